package proxy

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"go.opentelemetry.io/otel/attribute"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// CallerKey is where Envoy says, in the metadata of its calls to the processor, whose calls pass it.
const CallerKey = "x-ldfi-caller"

// Envoy's own words where nothing listens at the upstream.
const envoyRefused = "upstream connect error or disconnect/reset before headers. reset reason: " +
	"remote connection failure"

// longestHold is what the filter that ldfi exports lets us ask for, and Envoy no more than that.
const longestHold = time.Hour

// Processor is an external processor (ext_proc) for Envoy and Istio. It looks at the headers of requests
// and answers at once: to go on, or with the answer that the caller gets.
type Processor struct {
	extproc.UnimplementedExternalProcessorServer
	callers *Callers
	caller  string
	hosts   *fit.Hosts
}

// NewProcessor makes one. The caller is the one of requests that do not say, by [CallerKey], whose they are.
func NewProcessor(callers *Callers, caller string) *Processor {
	hosts, _ := fit.HostsFromEnv()
	processor := &Processor{callers: callers, caller: caller, hosts: hosts}
	processor.injector(caller)
	return processor
}

// Process serves one request that passes Envoy.
func (p *Processor) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // Envoy has ended the request, and that is no failure
		}
		headers := message.GetRequestHeaders()
		if headers == nil {
			return nil // a filter that is set up to send more: go on without us
		}
		answer, err := p.decide(stream, headers)
		if err != nil {
			return nil
		}
		p.withheld(answer, headersOf(headers))
		if err = stream.Send(answer); err != nil {
			return nil
		}
	}
}

func (p *Processor) callerOf(stream extproc.ExternalProcessor_ProcessServer) string {
	if sent, ok := metadata.FromIncomingContext(stream.Context()); ok {
		if names := sent.Get(CallerKey); len(names) > 0 {
			return names[0]
		}
	}
	return p.caller
}

// injector returns a caller's, which reports that all its calls over HTTP and gRPC pass here: where the filter
// stands is not for us to see, and before its matcher no other traffic is.
func (p *Processor) injector(caller string) *fit.Injector {
	injector := p.callers.Injector(caller)
	reachesAll(injector)
	return injector
}

// reachesAll reports that all of a caller's calls over HTTP and gRPC pass Envoy.
func reachesAll(injector *fit.Injector) {
	injector.Reaches("library:*") // on the wire it is all the same who calls
	injector.Reaches("http:*", httpKinds...)
	injector.Reaches("rpc:*", grpcKinds...)
}

func goOn() *extproc.ProcessingResponse {
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extproc.HeadersResponse{},
	}}
}

// withheld has a call go on without its failure context, to a host that may have none.
func (p *Processor) withheld(said *extproc.ProcessingResponse, headers http.Header) {
	host, _ := fit.SplitAuthority(headers.Get(":authority"))
	sent := http.Header{"Baggage": headers["Baggage"], "Authorization": headers["Authorization"]}
	kept := p.hosts.Withhold(host, sent)["Baggage"]
	if on := said.GetRequestHeaders(); on != nil && !slices.Equal(kept, sent["Baggage"]) {
		on.Response = &extproc.CommonResponse{HeaderMutation: replacedBy(http.Header{"Baggage": kept}, theirs)}
	}
}

func (p *Processor) decide(
	stream extproc.ExternalProcessor_ProcessServer, sent *extproc.HttpHeaders,
) (*extproc.ProcessingResponse, error) {
	headers := headersOf(sent)
	ctx, ok := carrying(stream.Context(), headers)
	if !ok {
		return goOn(), nil
	}
	path, _, _ := strings.Cut(headers.Get(":path"), "?")
	return decide(ctx, stream, p.injector(p.callerOf(stream)), request{
		method: headers.Get(":method"), authority: headers.Get(":authority"), path: path,
		grpc: isGRPC(headers.Get("Content-Type")), patience: patienceOf(headers.Get("Grpc-Timeout")),
		instance: fit.NewInstance(), // Envoy does not say whose connection it is
	})
}

// decide says what becomes of a call that passes: it goes on, or is answered.
func decide(
	ctx context.Context, stream extproc.ExternalProcessor_ProcessServer, injector *fit.Injector, passing request,
) (*extproc.ProcessingResponse, error) {
	fault := injector.Pass(ctx, fit.Call{
		Point: passing.point,
		Can: func(injection fit.Injection) bool {
			status := injection.Kind.Status()
			_, known := envoytype.StatusCode_name[int32(status)]
			return passing.canBoth(injection) && (status == 0 || known)
		},
		Instance: passing.instance,
	})
	if fault == nil {
		return goOn(), nil
	}
	return struck(stream, fault, passing)
}

func struck(
	stream extproc.ExternalProcessor_ProcessServer, fault *fit.Fault, passing request,
) (*extproc.ProcessingResponse, error) {
	if fault.Kind == fit.Delay || fault.Kind == fit.Timeout {
		if err := hold(stream, fault, passing.patience); err != nil || fault.Kind == fit.Delay {
			fault.End(err)
			return goOn(), err
		}
	}
	if passing.grpc {
		code := grpcStatus(fault.Kind)
		fault.End(errInjected, attribute.Int("rpc.grpc.status_code", code))
		return immediate(http.StatusOK, "application/grpc", injectedText, &extproc.GrpcStatus{Status: uint32(code)}), nil
	}
	if fault.Kind == fit.Refused {
		end(fault, http.StatusServiceUnavailable)
		return immediate(http.StatusServiceUnavailable, "text/plain", envoyRefused, nil), nil
	}
	answer := fit.AnswerOf(fault.Kind)
	end(fault, answer.Status)
	return immediate(answer.Status, answer.ContentType, string(answer.Body), nil), nil
}

// hold keeps a request waiting, and tells Envoy so: otherwise it would go on without us.
func hold(stream extproc.ExternalProcessor_ProcessServer, fault *fit.Fault, patience time.Duration) error {
	longest := fault.Longest
	if fault.Kind == fit.Timeout {
		longest = patience
	}
	more := durationpb.New(min(longest+time.Second, longestHold))
	if err := stream.Send(&extproc.ProcessingResponse{OverrideMessageTimeout: more}); err != nil {
		return err
	}
	if fault.Kind == fit.Delay {
		return fault.Wait(stream.Context())
	}
	timer := time.NewTimer(longest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

func headersOf(sent *extproc.HttpHeaders) http.Header {
	headers := http.Header{}
	for _, each := range sent.GetHeaders().GetHeaders() {
		value := each.GetValue()
		if raw := each.GetRawValue(); len(raw) > 0 {
			value = string(raw)
		}
		headers.Add(each.GetKey(), value)
	}
	return headers
}

func immediate(status int, contentType, body string, grpc *extproc.GrpcStatus) *extproc.ProcessingResponse {
	kind := &core.HeaderValue{Key: "content-type", RawValue: []byte(contentType)}
	return &extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
		ImmediateResponse: &extproc.ImmediateResponse{
			Status: &envoytype.HttpStatus{Code: envoytype.StatusCode(status)},
			Headers: &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{{
				Header: kind, AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
			}}},
			Body:       []byte(body),
			GrpcStatus: grpc,
			Details:    "ldfi_" + strings.ReplaceAll(injectedText, " ", "_"),
		},
	}}
}
