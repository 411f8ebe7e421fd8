/** OpenTelemetry set up by hand, with an instrumentation of Express that gives a middleware's `next` the old context. */

const { registerInstrumentations } = require('@opentelemetry/instrumentation')
const { GrpcInstrumentation } = require('@opentelemetry/instrumentation-grpc')
const { HttpInstrumentation } = require('@opentelemetry/instrumentation-http')
const { KoaInstrumentation } = require('@opentelemetry/instrumentation-koa')
const { NestInstrumentation } = require('@opentelemetry/instrumentation-nestjs-core')
const { UndiciInstrumentation } = require('@opentelemetry/instrumentation-undici')
const { NodeTracerProvider } = require('@opentelemetry/sdk-trace-node')
const { FastifyOtelInstrumentation } = require('@fastify/otel')
const { ExpressInstrumentation } = require('instrumentation-express-earlier')

new NodeTracerProvider().register()
registerInstrumentations({
  instrumentations: [
    new GrpcInstrumentation(), new HttpInstrumentation(), new UndiciInstrumentation(), new ExpressInstrumentation(), new KoaInstrumentation(),
    new NestInstrumentation(), new FastifyOtelInstrumentation({ registerOnInitialization: true }),
  ],
})
