//! One attribute as it is written: a key and a value, mostly a short string.

use crate::wire::text;

const KEY: u8 = 0x0a;
const VALUE: u8 = 0x12;

/// The key of an attribute, where it is one of the two ways in which everybody writes it; just
/// what the reference cuts out, so that nobody needs to ask.
#[must_use]
#[inline]
pub fn key(attribute: &[u8]) -> Option<&[u8]> {
    let [first, length, ..] = *attribute else {
        return None;
    };
    let at = 2 + usize::from(length);
    if length >= 0x80 || attribute.len() <= 2 {
        return None;
    }
    match first {
        KEY => attribute.get(2..at.min(attribute.len())),
        VALUE => match attribute.get(at..)? {
            [KEY, size, key @ ..] if *size < 0x80 && key.len() == usize::from(*size) => Some(key),
            _ => None,
        },
        _ => None,
    }
}

/// The value of an attribute that has a key of just this length, if it is a string and is written
/// in one of these two ways.
#[must_use]
pub fn string(attribute: &[u8], key: usize) -> Option<&str> {
    let value = match attribute.first()? {
        &KEY => attribute.get(2 + key..)?,
        _ => attribute.get(..attribute.len().checked_sub(2 + key)?)?,
    };
    let any = behind(VALUE, value)?;
    std::str::from_utf8(behind(KEY, any)?).ok()
}

/// What stands behind a tag and its length, if that is all there is.
fn behind(tag: u8, bytes: &[u8]) -> Option<&[u8]> {
    let (&first, mut rest) = bytes.split_first()?;
    let inner = text(&mut rest).ok()?;
    (first == tag && rest.is_empty()).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_read_in_either_order() {
        for attribute in [&b"\x0a\x01k\x12\x04\x0a\x02hi"[..], b"\x12\x04\x0a\x02hi\x0a\x01k"] {
            assert_eq!(key(attribute), Some(&b"k"[..]));
            assert_eq!(string(attribute, 1), Some("hi"));
        }
    }

    #[test]
    fn a_long_string_is_a_string() {
        let long = "x".repeat(200);
        let attribute = [b"\x0a\x01k\x12\xcb\x01\x0a\xc8\x01", long.as_bytes()].concat();
        assert_eq!(string(&attribute, 1), Some(long.as_str()));
    }

    #[test]
    fn whatever_else_is_left_to_others() {
        assert_eq!(key(b""), None);
        assert_eq!(key(b"\x0a\x00"), None);
        assert_eq!(string(b"\x0a\x01k\x12\x02\x18\x05", 1), None);
        assert_eq!(string(b"\x0a\x01k\x12\x04\x0a\x02\xff\xff", 1), None);
        assert_eq!(string(b"\x0a\x01k\x12\x04\x0a\x02hi\x12\x00", 1), None);
    }
}
