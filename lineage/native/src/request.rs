//! An `ExportTraceServiceRequest`, read no deeper than we need.
//!
//! Field numbers are those of `opentelemetry/proto/trace/v1/trace.proto`. A field of another type
//! than it should have is unknown, as for every reader of protocol buffers.

use crate::wire::{Fields, Strange, Value};

const RESOURCE_SPANS: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SCOPE_SPANS_OF_OLD: u32 = 1000;

/// The spans of one service.
#[derive(Debug, Default)]
pub struct Group<'a> {
    /// Whose they are, as it is written.
    pub resource: &'a [u8],
    /// Scopes with spans, in the order in which they are read.
    pub scopes: Vec<&'a [u8]>,
}

/// A span as it is written.
#[derive(Debug, Default, Clone)]
pub struct Span<'a> {
    /// Sixteen bytes, if it is right.
    pub trace_id: &'a [u8],
    /// Eight bytes, if it is right.
    pub span_id: &'a [u8],
    /// Of any length.
    pub parent_id: &'a [u8],
    /// Text, if it is right.
    pub name: &'a [u8],
    /// By OTLP's number.
    pub kind: i32,
    /// Nanoseconds since the epoch.
    pub start: u64,
    /// The same.
    pub end: u64,
    /// As it is written.
    pub status: &'a [u8],
}

/// What there may be any number of in a span, of one after the other.
#[derive(Debug, Default)]
pub struct Lists<'a> {
    /// Attributes as they are written.
    pub attributes: Vec<&'a [u8]>,
    /// Events as they are written.
    pub events: Vec<&'a [u8]>,
    /// Links as they are written.
    pub links: Vec<&'a [u8]>,
}

/// The groups of a request.
///
/// # Errors
/// Strange: the message is not what it should be.
pub fn groups(request: &[u8]) -> Result<Vec<Group<'_>>, Strange> {
    let mut found = Vec::new();
    let mut fields = Fields::of(request);
    while let Some(field) = fields.take()? {
        if let (RESOURCE_SPANS, Value::Bytes(message)) = field {
            found.push(group(message)?);
        }
    }
    Ok(found)
}

fn group(message: &[u8]) -> Result<Group<'_>, Strange> {
    let mut group = Group::default();
    let mut old = Vec::new();
    let mut fields = Fields::of(message);
    while let Some(field) = fields.take()? {
        match field {
            (1, Value::Bytes(resource)) => group.resource = resource,
            (SCOPE_SPANS, Value::Bytes(scope)) => group.scopes.push(scope),
            (SCOPE_SPANS_OF_OLD, Value::Bytes(scope)) => old.push(scope),
            _ => {}
        }
    }
    group.scopes.append(&mut old);
    Ok(group)
}

/// What a scope is called; empty where it has no name.
///
/// # Errors
/// Strange: the message is not what it should be.
pub fn scope(scope: &[u8]) -> Result<&str, Strange> {
    let (mut said, mut name): (&[u8], &[u8]) = (&[], &[]);
    let mut fields = Fields::of(scope);
    while let Some(field) = fields.take()? {
        if let (1, Value::Bytes(message)) = field {
            said = message;
        }
    }
    let mut fields = Fields::of(said);
    while let Some(field) = fields.take()? {
        if let (1, Value::Bytes(text)) = field {
            name = text;
        }
    }
    std::str::from_utf8(name).map_err(|_| Strange)
}

/// Go through the spans of a scope.
///
/// # Errors
/// Strange: the message is not what it should be, or as `each` has it.
pub fn spans<'a>(
    scope: &'a [u8],
    mut each: impl FnMut(&'a [u8]) -> Result<(), Strange>,
) -> Result<(), Strange> {
    let mut fields = Fields::of(scope);
    while let Some(field) = fields.take()? {
        if let (2, Value::Bytes(message)) = field {
            each(message)?;
        }
    }
    Ok(())
}

/// Read one span; `lists` is cleared first.
///
/// # Errors
/// Strange: the message is not what it should be.
#[inline]
pub fn span<'a>(message: &'a [u8], lists: &mut Lists<'a>) -> Result<Span<'a>, Strange> {
    lists.attributes.clear();
    lists.events.clear();
    lists.links.clear();
    let mut span = Span::default();
    let mut fields = Fields::of(message);
    while let Some(field) = fields.take()? {
        match field {
            (1, Value::Bytes(id)) => span.trace_id = id,
            (2, Value::Bytes(id)) => span.span_id = id,
            (4, Value::Bytes(id)) => span.parent_id = id,
            (5, Value::Bytes(name)) => span.name = name,
            // as every reader does it: what is too large is cut
            #[allow(clippy::cast_possible_truncation)]
            (6, Value::Number(kind)) => span.kind = kind as i32,
            (7, Value::Fixed64(time)) => span.start = time,
            (8, Value::Fixed64(time)) => span.end = time,
            (9, Value::Bytes(attribute)) => lists.attributes.push(attribute),
            (11, Value::Bytes(event)) => lists.events.push(event),
            (13, Value::Bytes(link)) => lists.links.push(link),
            (15, Value::Bytes(status)) => span.status = status,
            _ => {}
        }
    }
    Ok(span)
}
