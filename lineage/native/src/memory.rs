//! What was asked before: a system says the same few things over and over.
//!
//! Nothing in here knows what an attribute means. Whoever does is asked once for each value that
//! differs from all before by more than identifiers in a path, and answers with a number; an
//! operation is what the numbers of a span's attributes come to, together with the rest.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::attribute;
use crate::same::{same, Form};

/// What is asked about an operation.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The number of the service.
    pub service: u32,
    /// The name of the span.
    pub name: &'a [u8],
    /// Its kind, by OTLP's number, whatever that is.
    pub kind: i32,
    /// Its status, as it is written.
    pub status: &'a [u8],
    /// What the scope it stands in is called; empty where that has no name.
    pub scope: &'a str,
    /// Its attributes, by the numbers they were given.
    pub attributes: &'a [u32],
}

/// The number of an operation, and of the same where an event tells of an exception, if that makes
/// a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Of the operation as it is.
    pub plain: u32,
    /// Of the same with an exception.
    pub thrown: Option<u32>,
}

/// Knows what things mean. Numbers are its own; 0 is an attribute that says nothing.
pub trait Oracle {
    /// What goes wrong when it is asked.
    type Error;

    /// What this value of a wanted attribute says. `name`: its number in the table.
    ///
    /// # Errors
    /// As the oracle has them; so have all that follow.
    fn value(&mut self, name: usize, value: &str) -> Result<u32, Self::Error>;

    /// What this attribute says, however it is written. `group`: of kinds.
    ///
    /// # Errors
    /// See above.
    fn attribute(&mut self, group: Group, attribute: &[u8]) -> Result<u32, Self::Error>;

    /// Which service this resource is.
    ///
    /// # Errors
    /// See above.
    fn service(&mut self, resource: &[u8]) -> Result<u32, Self::Error>;

    /// What a span means.
    ///
    /// # Errors
    /// See above.
    fn operation(&mut self, asked: &Asked) -> Result<Operation, Self::Error>;
}

/// Kinds of span of which the same attributes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Nobody said the kind.
    Unsaid = 0,
    /// Who is asked: servers, consumers.
    Asked = 1,
    /// Who asks.
    Asking = 2,
}

impl Group {
    /// All of them.
    pub const ALL: [Group; 3] = [Group::Unsaid, Group::Asked, Group::Asking];

    fn of(kind: i32) -> Self {
        match kind {
            2 | 5 => Group::Asked,
            1 | 3 | 4 => Group::Asking,
            _ => Group::Unsaid,
        }
    }
}

/// An attribute that is wanted of a group of kinds.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Of which group.
    pub group: Group,
    /// What it is called.
    pub name: Vec<u8>,
    /// Where identifiers may be in it.
    pub form: Form,
}

/// A table that remembers; its hash is seeded anew in each process.
type Table<K, V> = HashMap<K, V, RandomState>;
type Numbers = Table<Box<[u8]>, u32>;

/// Of one wanted attribute: the values that were asked about.
#[derive(Debug)]
struct Values {
    name: usize,
    form: Form,
    strings: Table<Box<str>, u32>,
    others: Numbers,
}

/// The attribute that stood at some place in the span before, and its number. Spans of one service
/// say most things just as the one before them did, and then nothing is looked up.
#[derive(Debug, Default)]
struct Latest {
    attribute: Vec<u8>,
    number: u32,
}

/// Places in a span that are remembered so, and bytes of an attribute.
const PLACES: usize = 32;
const SHORT: usize = 128;

/// Values of one attribute that are remembered.
const MOST_VALUES: usize = 1 << 16;

/// The attribute that says a span's scope, in formats that have no scopes.
const SCOPE: &[u8] = b"otel.scope.name";

/// Above so many of anything all is forgotten, which is rare.
const MOST: usize = 300_000;

/// Bytes that count as one more thing that is remembered: a stranger's values may be long.
const WEIGHED: usize = 512;

/// See above: the numbers that were given.
#[derive(Debug)]
pub struct Memory {
    wanted: [Table<Box<[u8]>, Values>; 3],
    odd: [Numbers; 3],
    latest: [Vec<Latest>; 3],
    services: Numbers,
    operations: Table<Box<[u8]>, Operation>,
    remembered: usize,
}

/// Why there is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown<E> {
    /// It was never asked, and there is nobody to ask now.
    Unasked,
    /// Asking went wrong.
    Failed(E),
}

impl Memory {
    /// Nothing is known yet. `wanted`: its places are the numbers of the names.
    #[must_use]
    pub fn new(wanted: &[Wanted]) -> Self {
        let table = |group: Group| {
            wanted
                .iter()
                .enumerate()
                .filter(|(_, each)| each.group == group)
                .map(|(name, each)| {
                    let (strings, others) = (Table::default(), Table::default());
                    let form = each.form;
                    (each.name.clone().into(), Values { name, form, strings, others })
                })
                .collect()
        };
        Memory {
            wanted: Group::ALL.map(table),
            odd: Group::ALL.map(|_| Table::default()),
            latest: Group::ALL.map(|_| Vec::new()),
            services: Table::default(),
            operations: Table::default(),
            remembered: 0,
        }
    }

    /// Whether it is time to forget.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.remembered.max(self.operations.len()).max(self.services.len()) > MOST
    }

    /// Forget everything.
    pub fn forget(&mut self) {
        for values in self.wanted.iter_mut().flat_map(Table::values_mut) {
            values.strings = Table::default();
            values.others = Table::default();
        }
        self.odd = Group::ALL.map(|_| Table::default());
        self.latest = Group::ALL.map(|_| Vec::new());
        self.services = Table::default();
        self.operations = Table::default();
        self.remembered = 0;
    }

    /// The number of a service.
    ///
    /// # Errors
    /// It is not known and cannot be found out; so with all that follow.
    pub fn service<O: Oracle>(
        &mut self,
        resource: &[u8],
        oracle: Option<&mut O>,
    ) -> Result<u32, Unknown<O::Error>> {
        if let Some(&known) = self.services.get(resource) {
            return Ok(known);
        }
        let number = asking(oracle, |oracle| oracle.service(resource))?;
        self.services.insert(resource.into(), number);
        self.remembered += resource.len() / WEIGHED;
        Ok(number)
    }

    /// What a span means, by all that was read of it.
    ///
    /// # Errors
    /// See above.
    pub fn operation<O: Oracle>(
        &mut self,
        asked: &Asked,
        attributes: &[&[u8]],
        room: &mut Room,
        mut oracle: Option<&mut O>,
    ) -> Result<Operation, Unknown<O::Error>> {
        let group = Group::of(asked.kind);
        room.numbers.clear();
        if !asked.scope.is_empty() {
            let number = self.scope(group, asked.scope, oracle.as_deref_mut())?;
            room.numbers.push(number);
        }
        for (place, attribute) in attributes.iter().enumerate() {
            let number = if let Some(number) = self.again(group, place, attribute) {
                number
            } else {
                let number = self.attribute(group, attribute, oracle.as_deref_mut())?;
                self.note(group, place, attribute, number);
                number
            };
            room.numbers.push(number);
        }
        room.write(asked);
        if let Some(&known) = self.operations.get(room.key.as_slice()) {
            return Ok(known);
        }
        let asked = Asked { attributes: &room.numbers, ..*asked };
        let operation = asking(oracle, |oracle| oracle.operation(&asked))?;
        self.operations.insert(room.key.as_slice().into(), operation);
        self.remembered += room.key.len() / WEIGHED;
        Ok(operation)
    }

    #[inline]
    fn again(&self, group: Group, place: usize, attribute: &[u8]) -> Option<u32> {
        let latest = self.latest.get(group as usize)?.get(place)?;
        (latest.attribute == attribute && !attribute.is_empty()).then_some(latest.number)
    }

    fn note(&mut self, group: Group, place: usize, attribute: &[u8], number: u32) {
        let Some(places) = self.latest.get_mut(group as usize) else { return };
        if place >= PLACES || attribute.len() > SHORT {
            return;
        }
        if places.len() <= place {
            places.resize_with(place + 1, Latest::default);
        }
        if let Some(latest) = places.get_mut(place) {
            latest.attribute.clear();
            latest.attribute.extend_from_slice(attribute);
            latest.number = number;
        }
    }

    /// A scope is what the attribute of that name would be, were it on the span itself.
    fn scope<O: Oracle>(
        &mut self,
        group: Group,
        name: &str,
        oracle: Option<&mut O>,
    ) -> Result<u32, Unknown<O::Error>> {
        let [unsaid, asked, client] = &mut self.wanted;
        let wanted = match group {
            Group::Unsaid => unsaid,
            Group::Asked => asked,
            Group::Asking => client,
        };
        match wanted.get_mut(SCOPE) {
            Some(values) => values.number(name, oracle, &mut self.remembered),
            None => Ok(0),
        }
    }

    #[inline]
    fn attribute<O: Oracle>(
        &mut self,
        group: Group,
        blob: &[u8],
        oracle: Option<&mut O>,
    ) -> Result<u32, Unknown<O::Error>> {
        let [unsaid, asked, client] = &mut self.wanted;
        let wanted = match group {
            Group::Unsaid => unsaid,
            Group::Asked => asked,
            Group::Asking => client,
        };
        let Some(name) = attribute::key(blob) else {
            let [unsaid, asked, client] = &mut self.odd;
            let odd = match group {
                Group::Unsaid => unsaid,
                Group::Asked => asked,
                Group::Asking => client,
            };
            return other(odd, group, blob, oracle, &mut self.remembered);
        };
        let Some(values) = wanted.get_mut(name) else {
            return Ok(0);
        };
        let Some(value) = attribute::string(blob, name.len()) else {
            return other(&mut values.others, group, blob, oracle, &mut self.remembered);
        };
        if value.is_empty() {
            return Ok(0);
        }
        values.number(value, oracle, &mut self.remembered)
    }
}

impl Values {
    #[inline]
    fn number<O: Oracle>(
        &mut self,
        value: &str,
        oracle: Option<&mut O>,
        remembered: &mut usize,
    ) -> Result<u32, Unknown<O::Error>> {
        let same = same(self.form, value);
        if let Some(&known) = self.strings.get(same.as_ref()) {
            return Ok(known);
        }
        let number = asking(oracle, |oracle| oracle.value(self.name, &same))?;
        if self.strings.len() < MOST_VALUES {
            *remembered += 1 + same.len() / WEIGHED;
            self.strings.insert(same.into(), number);
        }
        Ok(number)
    }
}

fn other<O: Oracle>(
    known: &mut Numbers,
    group: Group,
    blob: &[u8],
    oracle: Option<&mut O>,
    remembered: &mut usize,
) -> Result<u32, Unknown<O::Error>> {
    if let Some(&number) = known.get(blob) {
        return Ok(number);
    }
    let number = asking(oracle, |oracle| oracle.attribute(group, blob))?;
    if known.len() < MOST_VALUES {
        known.insert(blob.into(), number);
        *remembered += 1 + blob.len() / WEIGHED;
    }
    Ok(number)
}

fn asking<O: Oracle, T>(
    oracle: Option<&mut O>,
    ask: impl FnOnce(&mut O) -> Result<T, O::Error>,
) -> Result<T, Unknown<O::Error>> {
    let oracle = oracle.ok_or(Unknown::Unasked)?;
    ask(oracle).map_err(Unknown::Failed)
}

/// Room to work in, kept from one span to the next.
#[derive(Debug, Default)]
pub struct Room {
    numbers: Vec<u32>,
    key: Vec<u8>,
}

impl Room {
    /// Write a key that no other operation has.
    fn write(&mut self, asked: &Asked) {
        let key = &mut self.key;
        key.clear();
        key.extend_from_slice(&asked.service.to_le_bytes());
        key.extend_from_slice(&asked.kind.to_le_bytes());
        key.extend_from_slice(&asked.name.len().to_le_bytes());
        key.extend_from_slice(asked.name);
        key.extend_from_slice(&asked.status.len().to_le_bytes());
        key.extend_from_slice(asked.status);
        for number in &self.numbers {
            key.extend_from_slice(&number.to_le_bytes());
        }
    }
}
