/**
 * What runs inside the agent. Helpers beside an application's classes see of an extension only what has a name
 * that begins like this package's, so what they need of us is here and not in {@code dev.ldfi.fit}.
 */
package io.opentelemetry.javaagent.ldfi;
