//! Reading a body: first what is known, then what has to be asked.
//!
//! The first part, all the decoding, needs nobody: it is done while other threads run Python. What
//! it leaves open, the few spans whose like was never seen, is then asked about.

use memchr::memmem;

use crate::memory::{Asked, Group, Memory, Operation, Oracle, Room, Unknown};
use crate::request::{self, Lists};
use crate::wire::Strange;

/// An event of that name, as it is written: field 2, nine bytes.
const EXCEPTION: &[u8] = b"\x12\x09exception";

/// A span that can be used.
#[derive(Debug)]
pub struct Span<'a> {
    /// Which trace it is of.
    pub trace_id: &'a [u8; 16],
    /// Its own id.
    pub span_id: &'a [u8; 8],
    /// Its parent's, of any length; none where there is no parent.
    pub parent_id: Option<&'a [u8]>,
    /// Nanoseconds since the epoch.
    pub start: u64,
    /// The same, never before `start`; 0 where that is not known.
    pub end: u64,
    /// The number of what it means.
    pub operation: u32,
    /// What it points to, as it is written.
    pub links: Vec<&'a [u8]>,
}

impl Span<'_> {
    /// Whether it says when it began, and points to nothing but a parent, whose id is one.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.start != 0 && self.links.is_empty() && self.parent_id.is_none_or(|id| id.len() == 8)
    }
}

/// What a body holds.
#[derive(Debug, Default)]
pub struct Read<'a> {
    /// Spans, in their order.
    pub spans: Vec<Span<'a>>,
    /// How many could not be used.
    pub rejected: usize,
    open: Vec<Open<'a>>,
}

/// A span of which nobody knows yet what it means.
#[derive(Debug)]
struct Open<'a> {
    place: usize,
    resource: &'a [u8],
    scope: &'a str,
    message: &'a [u8],
}

/// Where spans stand.
struct Within<'a> {
    resource: &'a [u8],
    scope: &'a str,
    service: Option<u32>,
}

/// Nobody to ask.
enum Nobody {}

impl Oracle for Nobody {
    type Error = Strange;
    fn value(&mut self, _: usize, _: &str) -> Result<u32, Strange> {
        match *self {}
    }
    fn attribute(&mut self, _: Group, _: &[u8]) -> Result<u32, Strange> {
        match *self {}
    }
    fn service(&mut self, _: &[u8]) -> Result<u32, Strange> {
        match *self {}
    }
    fn operation(&mut self, _: &Asked) -> Result<Operation, Strange> {
        match *self {}
    }
}

/// Read a body as far as it is known.
///
/// # Errors
/// Strange: this is for the reference to judge.
pub fn read<'a>(body: &'a [u8], memory: &mut Memory) -> Result<Read<'a>, Strange> {
    let groups = request::groups(body)?;
    if groups.is_empty() && !body.is_empty() {
        return Err(Strange);
    }
    let mut read = Read::default();
    let (mut lists, mut room) = (Lists::default(), Room::default());
    for group in &groups {
        let service = memory.service(group.resource, None::<&mut Nobody>).ok();
        for scope in &group.scopes {
            let within =
                Within { resource: group.resource, scope: request::scope(scope)?, service };
            request::spans(scope, |message| {
                read.take(&within, message, memory, &mut lists, &mut room)
            })?;
        }
    }
    Ok(read)
}

impl<'a> Read<'a> {
    fn take(
        &mut self,
        within: &Within<'a>,
        message: &'a [u8],
        memory: &mut Memory,
        lists: &mut Lists<'a>,
        room: &mut Room,
    ) -> Result<(), Strange> {
        let raw = request::span(message, lists)?;
        let (Ok(trace_id), Ok(span_id)) = (raw.trace_id.try_into(), raw.span_id.try_into()) else {
            self.rejected += 1;
            return Ok(());
        };
        if trace_id == &[0; 16] || span_id == &[0; 8] {
            self.rejected += 1;
            return Ok(());
        }
        let &Within { resource, scope, service } = within;
        let known = service.and_then(|service| {
            let nobody = None::<&mut Nobody>;
            meaning((service, scope), &raw, lists, memory, room, nobody).ok()
        });
        if known.is_none() {
            let place = self.spans.len();
            self.open.push(Open { place, resource, scope, message });
        }
        self.spans.push(Span {
            trace_id,
            span_id,
            parent_id: Some(raw.parent_id).filter(|id| !id.is_empty() && *id != [0; 8]),
            start: raw.start,
            end: if raw.start == 0 { 0 } else { raw.end.max(raw.start) },
            operation: known.unwrap_or_default(),
            links: lists.links.clone(),
        });
        Ok(())
    }

    /// Whether nothing has to be asked.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.open.is_empty()
    }

    /// Ask what is not known.
    ///
    /// # Errors
    /// As the oracle has them.
    pub fn ask<O: Oracle>(&mut self, memory: &mut Memory, oracle: &mut O) -> Result<(), O::Error> {
        let (mut lists, mut room) = (Lists::default(), Room::default());
        for open in std::mem::take(&mut self.open) {
            // it was read before
            let Ok(raw) = request::span(open.message, &mut lists) else { continue };
            let found = memory.service(open.resource, Some(oracle)).and_then(|service| {
                let told = (service, open.scope);
                meaning(told, &raw, &lists, memory, &mut room, Some(&mut *oracle))
            });
            match found {
                Ok(operation) => {
                    if let Some(span) = self.spans.get_mut(open.place) {
                        span.operation = operation;
                    }
                }
                Err(Unknown::Failed(error)) => return Err(error),
                Err(Unknown::Unasked) => {}
            }
        }
        Ok(())
    }
}

fn meaning<O: Oracle>(
    (service, scope): (u32, &str),
    raw: &request::Span,
    lists: &Lists,
    memory: &mut Memory,
    room: &mut Room,
    oracle: Option<&mut O>,
) -> Result<u32, Unknown<O::Error>> {
    let asked = Asked {
        service,
        name: raw.name,
        kind: raw.kind,
        status: raw.status,
        scope,
        attributes: &[],
    };
    let operation = memory.operation(&asked, &lists.attributes, room, oracle)?;
    let thrown = operation.thrown.filter(|_| !lists.events.is_empty() && threw(&lists.events));
    Ok(thrown.unwrap_or(operation.plain))
}

/// Whether an event tells of an exception. Looked for just where the reference does: in all events
/// as they stand behind one another.
fn threw(events: &[&[u8]]) -> bool {
    match events {
        [one] => memmem::find(one, EXCEPTION).is_some(),
        more => memmem::find(&more.concat(), EXCEPTION).is_some(),
    }
}
