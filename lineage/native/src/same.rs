//! What differs between the URLs of one kind: identifiers in paths, made equal.
//!
//! The rules for that are Python's (`ldfi.lineage.attributes`), and Python is asked. But only once
//! for each kind of URL: what is certainly an identifier is brought to `0` first, just as it is
//! there. Both are held against one another by property tests.

use std::borrow::Cow;

/// Which part of a value may hold identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// None: it is kept, or it has no paths.
    Other,
    /// A path.
    Path,
    /// What follows the host of a URL.
    Url,
    /// The same without its query, which goes.
    CalledUrl,
}

/// Make a value equal to those that differ from it in identifiers only.
#[must_use]
pub fn same(form: Form, value: &str) -> Cow<'_, str> {
    match form {
        Form::Other => Cow::Borrowed(value),
        Form::Path => without_identifiers(value, 0),
        Form::Url => without_identifiers(value, path_of(value)),
        Form::CalledUrl => {
            let called = value.split_once('?').map_or(value, |(called, _)| called);
            without_identifiers(called, path_of(called))
        }
    }
}

/// Where the path of a URL begins.
fn path_of(url: &str) -> usize {
    let bytes = url.as_bytes();
    let scheme = bytes.get(..8).unwrap_or(bytes);
    if !scheme.windows(3).any(|three| three == b"://") {
        return 0;
    }
    let path = bytes.get(8..).unwrap_or_default();
    memchr::memchr(b'/', path).map_or(bytes.len(), |at| at + 8)
}

fn without_identifiers(value: &str, from: usize) -> Cow<'_, str> {
    // letters and digits of all the world, and lines, are Python's
    if !value.is_ascii() || memchr::memchr(b'\n', value.as_bytes()).is_some() {
        return Cow::Borrowed(value);
    }
    let Some((head, path)) = value.split_at_checked(from) else {
        return Cow::Borrowed(value);
    };
    // every identifier has a digit, or the dashes of a UUID
    if !path.bytes().any(|byte| byte.is_ascii_digit() || byte == b'-') {
        return Cow::Borrowed(value);
    }
    let mut segments = path.split_inclusive(['/', '?', '#']);
    let mut made = String::with_capacity(value.len());
    made.push_str(head);
    made.push_str(segments.next().unwrap_or_default());
    for segment in segments {
        let end = segment.trim_end_matches(['/', '?', '#']);
        if made.ends_with('/') && is_identifier(end.as_bytes()) {
            made.push('0');
            made.push_str(segment.get(end.len()..).unwrap_or_default());
        } else {
            made.push_str(segment);
        }
    }
    Cow::Owned(made)
}

fn is_identifier(segment: &[u8]) -> bool {
    is_numbered(segment) || is_digits(segment) || is_hexadecimal(segment) || is_uuid(segment)
}

/// At most eight letters, perhaps a sign, then three digits or more.
fn is_numbered(segment: &[u8]) -> bool {
    let letters = segment.iter().take_while(|each| each.is_ascii_alphabetic()).count();
    let rest = segment.get(letters..).unwrap_or_default();
    let signed = matches!(rest.first(), Some(b'-' | b'_' | b'.'));
    let digits = rest.get(usize::from(signed)..).unwrap_or_default();
    letters <= 8 && digits.len() >= 3 && is_digits(digits)
}

fn is_digits(segment: &[u8]) -> bool {
    !segment.is_empty() && segment.iter().all(u8::is_ascii_digit)
}

fn is_hexadecimal(segment: &[u8]) -> bool {
    segment.len() >= 8
        && segment.iter().all(|&each| is_lower_hex(each))
        && segment.iter().any(u8::is_ascii_digit)
}

fn is_uuid(segment: &[u8]) -> bool {
    segment.len() == 36
        && segment.iter().enumerate().all(|(at, &each)| match at {
            8 | 13 | 18 | 23 => each == b'-',
            _ => is_lower_hex(each),
        })
}

fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_go_and_names_stay() {
        for (path, expected) in [
            ("/titles/123", "/titles/0"),
            ("/titles/7?page=3", "/titles/0?page=3"),
            ("/a/tt-0123/b", "/a/0/b"),
            ("/deadbeef/deadbee1", "/deadbeef/0"),
            ("/0f8fad5b-d9cb-469f-a165-70867728950e#x", "/0#x"),
            ("/v1/12a/longername123", "/v1/12a/longername123"),
            ("123/45", "123/0"),
            ("/1//2/", "/0//0/"),
            ("?/5", "?/0"),
        ] {
            assert_eq!(same(Form::Path, path), expected, "{path}");
        }
    }

    #[test]
    fn of_a_url_only_the_path_changes() {
        assert_eq!(same(Form::Url, "http://h/123?x=/9"), "http://h/0?x=/0");
        assert_eq!(same(Form::Url, "http://host:80"), "http://host:80");
        assert_eq!(same(Form::CalledUrl, "http://host1/12?x=1"), "http://host1/0");
        assert_eq!(same(Form::Url, "/é/123"), "/é/123");
    }
}
