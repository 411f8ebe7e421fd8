package frameworks

import (
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/labstack/echo/v4"
	"github.com/riandyrn/otelchi"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gorilla/mux/otelmux"
	"go.opentelemetry.io/contrib/instrumentation/github.com/labstack/echo/otelecho"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// page is what every path of a server does.
type page = http.HandlerFunc

func onNetHTTP(serves page) http.Handler {
	routes := http.NewServeMux()
	routes.Handle("/{way}", serves)
	return routes
}

func onGorilla(serves page, within ...mux.MiddlewareFunc) http.Handler {
	routes := mux.NewRouter()
	routes.Use(within...)
	routes.Handle("/{way}", serves)
	return routes
}

func onGin(serves page, within ...gin.HandlerFunc) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.Use(within...)
	engine.Any("/:way", func(c *gin.Context) { serves(c.Writer, c.Request) })
	return engine
}

func onEcho(serves page, within ...echo.MiddlewareFunc) http.Handler {
	server := echo.New()
	server.Use(within...)
	server.Any("/:way", func(c echo.Context) error {
		serves(c.Response(), c.Request())
		return nil
	})
	return server
}

func onChi(serves page, within ...func(http.Handler) http.Handler) http.Handler {
	routes := chi.NewRouter()
	routes.Use(within...)
	routes.Handle("/{way}", serves)
	return routes
}

// traced are servers by their framework and what traces them: otelhttp around all of it, as howto/go.md has it with
// injector.Handler, or the framework's own middleware, whose requests the sampler knows.
func traced(injector *fit.Injector) map[string]func(page) http.Handler {
	around := func(on func(page) http.Handler) func(page) http.Handler {
		return func(serves page) http.Handler { return otelhttp.NewHandler(injector.Handler(on(serves)), "server") }
	}
	return map[string]func(page) http.Handler{
		"net/http, otelhttp": around(onNetHTTP),
		"gorilla, otelhttp":  around(func(serves page) http.Handler { return onGorilla(serves) }),
		"gorilla, otelmux":   func(serves page) http.Handler { return onGorilla(serves, otelmux.Middleware("edge")) },
		"gin, otelhttp":      around(func(serves page) http.Handler { return onGin(serves) }),
		"gin, otelgin":       func(serves page) http.Handler { return onGin(serves, otelgin.Middleware("edge")) },
		"echo, otelhttp":     around(func(serves page) http.Handler { return onEcho(serves) }),
		"echo, otelecho":     func(serves page) http.Handler { return onEcho(serves, otelecho.Middleware("edge")) },
		"chi, otelhttp":      around(func(serves page) http.Handler { return onChi(serves) }),
		"chi, otelchi":       func(serves page) http.Handler { return onChi(serves, otelchi.Middleware("edge")) },
	}
}
