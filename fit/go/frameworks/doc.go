// Package frameworks holds the edge against each web framework that a page names, with that framework's real
// instrumentation: what counts is what the next service is sent. It is a module of its own, so that no service that
// has this one's parent gets a framework with it.
package frameworks
