//! An oracle that knows nothing but how often it was asked; and bodies to read.

use ldfi_native::memory::{Asked, Group, Operation, Oracle, Wanted};
use ldfi_native::same::Form;
use ldfi_native::wire::Strange;

/// Gives a new number to whatever it is asked.
#[derive(Default)]
pub struct Counting {
    /// How often it was asked.
    pub asked: u32,
}

impl Counting {
    fn next(&mut self) -> u32 {
        self.asked += 1;
        self.asked
    }
}

impl Oracle for Counting {
    type Error = Strange;

    fn value(&mut self, _: usize, _: &str) -> Result<u32, Strange> {
        Ok(self.next())
    }

    fn attribute(&mut self, _: Group, _: &[u8]) -> Result<u32, Strange> {
        Ok(self.next())
    }

    fn service(&mut self, _: &[u8]) -> Result<u32, Strange> {
        Ok(self.next())
    }

    fn operation(&mut self, _: &Asked) -> Result<Operation, Strange> {
        Ok(Operation { plain: self.next(), thrown: Some(self.next()) })
    }
}

/// Some attributes, of all groups.
pub fn wanted() -> Vec<Wanted> {
    let names = [("http.url", Form::Url), ("url.path", Form::Path), ("peer", Form::Other)];
    Group::ALL
        .iter()
        .flat_map(|&group| {
            names.map(|(name, form)| Wanted { group, name: name.as_bytes().to_vec(), form })
        })
        .collect()
}

/// A message, or text, as a field.
pub fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut written = varint(u64::from(number << 3 | 2));
    written.extend(varint(content.len() as u64));
    written.extend(content);
    written
}

/// A number of variable length.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut written = vec![];
    while value > 0x7f {
        written.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    written.push(value as u8);
    written
}

/// An attribute that is a string.
pub fn attribute(name: &str, value: &str) -> Vec<u8> {
    [field(1, name.as_bytes()), field(2, &field(1, value.as_bytes()))].concat()
}

/// A span, of a server.
pub fn span(id: u64, name: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut written = [field(1, &[7; 16]), field(2, &id.to_be_bytes()), field(4, &[9; 8])].concat();
    written.extend(field(5, name.as_bytes()));
    written.extend([6 << 3, 2, 7 << 3 | 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    written.extend(attributes.iter().flat_map(|each| field(9, each)));
    written
}

/// A request with these spans of one service.
pub fn request(spans: &[Vec<u8>]) -> Vec<u8> {
    let scope: Vec<u8> = spans.iter().flat_map(|each| field(2, each)).collect();
    let resource = field(1, &field(1, &attribute("service.name", "api")));
    field(1, &[resource, field(2, &scope)].concat())
}
