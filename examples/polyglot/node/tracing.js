/** OpenTelemetry, for the service in Node: `--import` it after `ldfi-fit/register`. */

import { createRequire } from 'node:module'

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { detectResources, envDetector } from '@opentelemetry/resources'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

const provider = new NodeTracerProvider({
  resource: detectResources({ detectors: [envDetector] }), // OTEL_SERVICE_NAME
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
})
provider.register()
const ignoreIncomingRequestHook = (request) => request.url === '/health'
registerInstrumentations({ instrumentations: [new HttpInstrumentation({ ignoreIncomingRequestHook })] })
createRequire(import.meta.url)('node:http') // what is imported afterwards is instrumented
