//! The border: bytes from Python in, rows of spans out.

use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::memory::{Asked, Group, Memory, Operation, Oracle, Wanted};
use crate::reading::{read, Span};
use crate::same::{same, Form};

/// What both sides have agreed on. Python uses no other than the one it knows.
const INTERFACE: u32 = 1;

#[pymodule]
fn ldfi_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Reader>()?;
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

    /// Read a body: one row for each span, and how many could not be used. None where the
    /// reference is to read it. Others may run Python meanwhile.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        body: &Bound<'py, PyBytes>,
    ) -> PyResult<Option<(Bound<'py, PyList>, usize)>> {
        if self.memory.is_full() {
            self.memory.forget();
            self.python.forget();
        }
        let (bytes, memory) = (body.as_bytes(), &mut self.memory);
        let done = py.detach(|| catch_unwind(AssertUnwindSafe(|| read(bytes, memory))));
        let Ok(Ok(mut found)) = done else { return Ok(None) };
        found.ask(&mut self.memory, &mut self.python.asked_in(py))?;
        let rows = self.python.rows(py, &found.spans)?;
        Ok(Some((rows, found.rejected)))
    }
}

/// What Python has told, by number.
struct Python_ {
    oracle: Py<PyAny>,
    fields: Vec<Py<PyAny>>,
    services: Vec<Py<PyAny>>,
    operations: Vec<Py<PyAny>>,
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
            let operation = self.operations.get(index(span.operation)).map(|each| each.bind(py));
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

    fn links<'py>(&self, py: Python<'py>, links: &[&[u8]]) -> PyResult<Bound<'py, PyAny>> {
        let blobs = PyList::new(py, links.iter().map(|link| PyBytes::new(py, link)))?;
        self.oracle.bind(py).call_method1("links", (blobs,))
    }
}

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
        let (plain, thrown): (Py<PyAny>, Option<Py<PyAny>>) =
            self.python.oracle.bind(py).call_method1("operation", asked)?.extract()?;
        let operations = &mut self.python.operations;
        operations.push(plain);
        let plain = last(operations);
        let thrown = thrown.map(|thrown| {
            operations.push(thrown);
            last(operations)
        });
        Ok(Operation { plain, thrown })
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
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or_default();
    let text: String =
        bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect();
    PyString::new(py, &text)
}
