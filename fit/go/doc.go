// Package fit makes the calls of a Go service injection points: places where a call can be made to
// fail, for one request, because that request carries a signed failure context in its W3C baggage.
//
// Without a key in the environment it does nothing at all. With one, a request that carries no
// context pays for one look into its [context.Context]:
//
//	injector, err := fit.FromEnv() // FIT_KEYS, OTEL_SERVICE_NAME; nil without a key
//	if err != nil {
//		log.Print(err) // fit stays off; the service starts all the same
//	}
//	client := &http.Client{Transport: otelhttp.NewTransport(injector.Transport(nil))}
//	handler := otelhttp.NewHandler(injector.Handler(mux), "server")
//
// A nil *[Injector] is one that does nothing, so no caller has to ask. What fails looks like the
// failure itself: the errors are those of net, net/http, grpc and the database's driver. Every fault
// that fires is written on the call's span; where spans are not recorded nothing is injected, since
// what cannot be seen afterwards proves nothing.
//
// Requests are stamped at the edge, which package edge is.
//
// The failure context is specified in docs/failure-context.md and held against fit/protocol/vectors.
package fit
