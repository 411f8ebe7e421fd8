//! The border: bytes from Python in; out come the parts of traces, or rows of spans.

#![allow(clippy::needless_pass_by_value)] // what Python hands over it keeps

use std::borrow::Cow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::json::rewritten;
use crate::memory::{Asked, Group, Memory, Operation, Oracle, Wanted};
use crate::reading::{read, Read, Span};
use crate::same::{same, Form};
use crate::shelf::{self, Meaning, Node};

/// What both sides have agreed on. Python uses no other than the one it knows.
const INTERFACE: u32 = 5;

#[pymodule]
fn ldfi_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Reader>()?;
    module.add_class::<Shelf>()?;
    module.add_function(wrap_pyfunction!(rows, module)?)?;
    module.add_function(wrap_pyfunction!(same_value, module)?)
}

/// Make a value equal to those that differ from it in identifiers only.
#[pyfunction]
fn same_value(form: &str, value: &str) -> String {
    same(form_of(form), value).into_owned()
}

fn form_of(name: &str) -> Form {
    match name {
        "path" => Form::Path,
        "url" => Form::Url,
        "called_url" => Form::CalledUrl,
        _ => Form::Other,
    }
}

/// Bytes of a body for which it does not pay to let others run Python: they take microseconds, and
/// who has let go may have to wait for milliseconds.
const SHORT: usize = 4 << 10;

/// Reads bodies, and remembers what it has asked `oracle` before. For one thread at a time.
#[pyclass]
struct Reader {
    memory: Memory,
    python: Python_,
}

#[pymethods]
impl Reader {
    /// `wanted`: group of kinds, name and form of each attribute that is read.
    #[new]
    fn new(wanted: Vec<(u8, Vec<u8>, String)>, oracle: Bound<'_, PyAny>) -> Self {
        let wanted: Vec<Wanted> = wanted
            .into_iter()
            .filter_map(|(group, name, form)| {
                let group = *Group::ALL.get(usize::from(group))?;
                Some(Wanted { group, name, form: form_of(&form) })
            })
            .collect();
        let memory = Memory::new(&wanted);
        Reader { memory, python: Python_::new(oracle.unbind()) }
    }

    /// Read bodies: of each its parts of traces, and how many spans could not be used. Where a span
    /// has links, or a parent that is none, rows of all spans instead. None where the reference is
    /// to read it. Others may run Python meanwhile, unless there is little to read. `as_json`: how they
    /// are written.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        bodies: Vec<Bound<'py, PyBytes>>,
        as_json: bool,
    ) -> PyResult<Vec<Option<Told<'py>>>> {
        if self.memory.is_full() {
            self.memory.forget();
            self.python.forget();
        }
        let bodies: Vec<&[u8]> = bodies.iter().map(PyBytesMethods::as_bytes).collect();
        let short = bodies.iter().map(|body| body.len()).sum::<usize>() < SHORT;
        let written: Vec<Option<Cow<[u8]>>> = if as_json {
            py.detach(|| {
                bodies.iter().map(|body| rewritten_in_peace(body).map(Cow::Owned)).collect()
            })
        } else {
            bodies.iter().map(|body| Some(Cow::Borrowed(*body))).collect()
        };
        let (memory, python) = (&mut self.memory, &self.python);
        let mut decode = || -> Vec<_> {
            written.iter().map(|body| decoded(body.as_ref()?, memory, python)).collect()
        };
        let found = if short { decode() } else { py.detach(decode) };
        found.into_iter().map(|each| each.map(|each| self.told(py, each)).transpose()).collect()
    }
}

fn rewritten_in_peace(body: &[u8]) -> Option<Vec<u8>> {
    catch_unwind(|| rewritten(body)).ok()?.ok()
}

/// Whether there are parts, these or rows, and how many spans could not be used.
type Told<'py> = (bool, Bound<'py, PyList>, usize);

/// What is read of a body, and its parts where nothing has to be asked for them.
type Decoded<'a> = (Read<'a>, Option<Vec<Divided>>);

fn decoded<'a>(body: &'a [u8], memory: &mut Memory, python: &Python_) -> Option<Decoded<'a>> {
    catch_unwind(AssertUnwindSafe(|| {
        let found = read(body, memory).ok()?;
        let parts = if found.is_known() { python.divide(&found.spans) } else { None };
        Some((found, parts))
    }))
    .ok()?
}

impl Reader {
    fn told<'py>(&mut self, py: Python<'py>, found: Decoded) -> PyResult<Told<'py>> {
        let (mut found, mut parts) = found;
        if !found.is_known() {
            found.ask(&mut self.memory, &mut self.python.asked_in(py))?;
            parts = self.python.divide(&found.spans);
        }
        match parts {
            Some(parts) => Ok((true, handed_over(py, parts)?, found.rejected)),
            None => Ok((false, self.python.rows(py, &found.spans)?, found.rejected)),
        }
    }
}

/// An operation of Python's, with what is asked of it again and again.
struct Operation_ {
    object: Py<PyAny>,
    traits: u8,
}

impl Operation_ {
    fn has(&self, bit: u8) -> bool {
        self.traits & (1 << bit) != 0
    }
}

/// Kept as long as anything that means it.
#[derive(Clone)]
struct Known(Arc<Operation_>);

impl Meaning for Known {
    fn id(&self) -> usize {
        self.0.object.as_ptr() as usize
    }
    fn serves(&self) -> bool {
        self.0.has(0)
    }
    fn enters(&self) -> bool {
        self.0.has(1)
    }
    fn detached(&self) -> bool {
        self.0.has(2)
    }
    fn calls(&self) -> bool {
        self.0.has(3)
    }
}

/// A span, as small as it can be.
struct Small {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    start: u64,
    end: u64,
    place: u32,
    known: Known,
}

impl Small {
    fn node(&self) -> Node<'_, Known> {
        let Small { id, parent, start, end, ref known, .. } = *self;
        Node { id, parent, start, end, meaning: known }
    }
}

/// Parts of about so many spans are not moved to save the room of a few more.
const SMALL_PART: usize = 4;

/// Spans of one trace that came together.
#[pyclass(frozen)]
struct Part {
    /// 32 hexadecimal digits.
    #[pyo3(get)]
    trace_id: Py<PyString>,
    spans: Vec<Small>,
}

#[pymethods]
impl Part {
    fn __len__(&self) -> usize {
        self.spans.len()
    }
}

/// Rows of the spans in these parts: by time and id, or as they were written.
#[pyfunction]
fn rows<'py>(
    py: Python<'py>,
    parts: Vec<PyRef<'py, Part>>,
    by_time: bool,
) -> PyResult<Bound<'py, PyList>> {
    let nothing = PyTuple::empty(py);
    let mut spans: Vec<(&Py<PyString>, &Small)> = parts
        .iter()
        .flat_map(|part| part.spans.iter().map(|span| (&part.trace_id, span)))
        .collect();
    if by_time {
        spans.sort_by_key(|(_, span)| (span.start, span.id));
    } else {
        spans.sort_by_key(|(_, span)| span.place);
    }
    let list = PyList::empty(py);
    for (trace_id, span) in spans {
        let parent = span.parent.map(|id| hexadecimal(py, &id));
        let (id, operation) = (hexadecimal(py, &span.id), &span.known.0.object);
        list.append((trace_id, id, parent, span.start, span.end, operation, &nothing))?;
    }
    Ok(list)
}

/// Recognises whole traces.
#[pyclass]
#[derive(Default)]
struct Shelf {
    shelf: shelf::Shelf<Known>,
}

type Counted<'py> = Vec<(Bound<'py, PyAny>, usize)>;

#[pymethods]
impl Shelf {
    #[new]
    fn new() -> Self {
        Shelf::default()
    }

    /// Recognise a trace: the number of its shape; its root's operation, start and end, and whether
    /// that says no parent; and whether some span announces calls. None for one that is no plain
    /// tree.
    #[allow(clippy::type_complexity)]
    fn recognise<'py>(
        &mut self,
        py: Python<'py>,
        parts: Vec<PyRef<'py, Part>>,
    ) -> Option<(u64, Bound<'py, PyAny>, u64, u64, bool, bool)> {
        let spans: Vec<&Small> = parts.iter().flat_map(|part| part.spans.iter()).collect();
        let nodes: Vec<_> = spans.iter().map(|span| span.node()).collect();
        let plain = self.shelf.recognise(&nodes)?;
        let root = spans.get(plain.root)?;
        let what = root.known.0.object.bind(py).clone();
        let announces = spans.iter().any(|span| span.known.0.has(4));
        Some((plain.number, what, root.start, root.end, root.parent.is_none(), announces))
    }

    /// Of a plain tree whose root has no parent: operations, each with how many spans are of it,
    /// that served below others, and of calls that were answered and that were not.
    #[staticmethod]
    fn told<'py>(
        py: Python<'py>,
        parts: Vec<PyRef<'py, Part>>,
    ) -> (Counted<'py>, Counted<'py>, Counted<'py>) {
        let spans: Vec<&Small> = parts.iter().flat_map(|part| part.spans.iter()).collect();
        let nodes: Vec<_> = spans.iter().map(|span| span.node()).collect();
        let told = shelf::told(&nodes);
        let named = |list: Vec<(usize, usize)>| {
            list.into_iter()
                .filter_map(|(place, times)| {
                    Some((spans.get(place)?.known.0.object.bind(py).clone(), times))
                })
                .collect()
        };
        (named(told.under), named(told.answered), named(told.unanswered))
    }
}

/// A trace's id and its spans.
type Divided = ([u8; 16], Vec<Small>);

fn handed_over(py: Python<'_>, parts: Vec<Divided>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (trace_id, spans) in parts {
        let trace_id = hexadecimal(py, &trace_id).unbind();
        list.append(Bound::new(py, Part { trace_id, spans })?)?;
    }
    Ok(list)
}

/// What Python has told, by number.
struct Python_ {
    oracle: Py<PyAny>,
    fields: Vec<Py<PyAny>>,
    services: Vec<Py<PyAny>>,
    operations: Vec<Known>,
    numbers: Option<Py<PyDict>>,
}

impl Python_ {
    fn new(oracle: Py<PyAny>) -> Self {
        Python_ { oracle, fields: vec![], services: vec![], operations: vec![], numbers: None }
    }

    fn asked_in<'a, 'py>(&'a mut self, py: Python<'py>) -> Asking<'a, 'py> {
        Asking { python: self, py }
    }

    fn forget(&mut self) {
        self.fields.clear();
        self.services.clear();
        self.operations.clear();
        self.numbers = None;
    }

    fn rows<'py>(&self, py: Python<'py>, spans: &[Span]) -> PyResult<Bound<'py, PyList>> {
        let nothing = PyTuple::empty(py).into_any();
        let rows = PyList::empty(py);
        let mut latest: Option<(&[u8; 16], Bound<'py, PyString>)> = None;
        for span in spans {
            let trace_id = match &latest {
                Some((id, text)) if *id == span.trace_id => text.clone(),
                _ => hexadecimal(py, span.trace_id),
            };
            let operation = self.operations.get(index(span.operation)).map(|each| &each.0.object);
            let links = match span.links.as_slice() {
                [] => nothing.clone(),
                links => self.links(py, links)?,
            };
            let parent = span.parent_id.map(|id| hexadecimal(py, id));
            let id = hexadecimal(py, span.span_id);
            rows.append((&trace_id, id, parent, span.start, span.end, operation, links))?;
            latest = Some((span.trace_id, trace_id));
        }
        Ok(rows)
    }

    /// Divide spans by trace, in the order in which the traces come; none where one of them is not
    /// plain. Needs nobody.
    fn divide(&self, spans: &[Span]) -> Option<Vec<Divided>> {
        if !spans.iter().all(Span::is_plain) {
            return None;
        }
        let mut places: HashMap<[u8; 16], usize, RandomState> = HashMap::default();
        let mut found: Vec<Divided> = Vec::new();
        let mut latest: Option<(&[u8; 16], usize)> = None;
        for (number, span) in spans.iter().enumerate() {
            let place = match latest {
                Some((id, place)) if id == span.trace_id => place,
                _ => *places.entry(*span.trace_id).or_insert_with(|| {
                    found.push((*span.trace_id, Vec::new()));
                    found.len() - 1
                }),
            };
            latest = Some((span.trace_id, place));
            let known = self.operations.get(index(span.operation))?;
            found.get_mut(place)?.1.push(Small {
                id: *span.span_id,
                parent: span.parent_id.and_then(|id| id.try_into().ok()),
                start: span.start,
                end: span.end,
                place: u32::try_from(number).unwrap_or(u32::MAX),
                known: known.clone(),
            });
        }
        for (_, part) in &mut found {
            if part.capacity() > 2 * SMALL_PART {
                part.shrink_to_fit();
            }
        }
        Some(found)
    }

    fn links<'py>(&self, py: Python<'py>, links: &[&[u8]]) -> PyResult<Bound<'py, PyAny>> {
        let blobs = PyList::new(py, links.iter().map(|link| PyBytes::new(py, link)))?;
        self.oracle.bind(py).call_method1("links", (blobs,))
    }
}

/// An operation and its traits, as Python gives them.
type Named = (Py<PyAny>, u8);

/// Asks Python.
struct Asking<'a, 'py> {
    python: &'a mut Python_,
    py: Python<'py>,
}

impl Asking<'_, '_> {
    /// The number of a field and its value; 0 for none.
    fn number(&mut self, field: Bound<'_, PyAny>) -> PyResult<u32> {
        if field.is_none() {
            return Ok(0);
        }
        let numbers = self.python.numbers.get_or_insert_with(|| PyDict::new(self.py).unbind());
        let numbers = numbers.bind(self.py);
        if let Some(known) = numbers.get_item(&field)? {
            return known.extract();
        }
        self.python.fields.push(field.clone().unbind());
        let number = last(&self.python.fields) + 1;
        numbers.set_item(field, number)?;
        Ok(number)
    }
}

impl Oracle for Asking<'_, '_> {
    type Error = PyErr;

    fn value(&mut self, name: usize, value: &str) -> PyResult<u32> {
        let field = self.python.oracle.bind(self.py).call_method1("value", (name, value))?;
        self.number(field)
    }

    fn attribute(&mut self, group: Group, attribute: &[u8]) -> PyResult<u32> {
        let asked = (group as u8, PyBytes::new(self.py, attribute));
        let field = self.python.oracle.bind(self.py).call_method1("attribute", asked)?;
        self.number(field)
    }

    fn service(&mut self, resource: &[u8]) -> PyResult<u32> {
        let asked = (PyBytes::new(self.py, resource),);
        let service = self.python.oracle.bind(self.py).call_method1("service", asked)?;
        self.python.services.push(service.unbind());
        Ok(last(&self.python.services))
    }

    fn operation(&mut self, asked: &Asked) -> PyResult<Operation> {
        let py = self.py;
        let service = self.python.services.get(index(asked.service)).map(|each| each.bind(py));
        let said = asked.attributes.iter().filter_map(|&number| {
            self.python.fields.get(index(number.checked_sub(1)?)).map(|each| each.bind(py))
        });
        let fields = PyTuple::new(py, said.collect::<Vec<_>>())?;
        let (name, status) = (PyBytes::new(py, asked.name), PyBytes::new(py, asked.status));
        let asked = (service, name, asked.kind, status, fields);
        let (plain, thrown): (Named, Option<Named>) =
            self.python.oracle.bind(py).call_method1("operation", asked)?.extract()?;
        let mut number = |(object, traits): Named| {
            self.python.operations.push(Known(Arc::new(Operation_ { object, traits })));
            last(&self.python.operations)
        };
        Ok(Operation { plain: number(plain), thrown: thrown.map(number) })
    }
}

/// The number of what was added last. Memory is over long before numbers are.
fn last<T>(list: &[T]) -> u32 {
    u32::try_from(list.len().saturating_sub(1)).unwrap_or(u32::MAX)
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn hexadecimal<'py>(py: Python<'py>, bytes: &[u8]) -> Bound<'py, PyString> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0'));
    let mut text = String::with_capacity(2 * bytes.len());
    for &byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    PyString::new(py, &text)
}
