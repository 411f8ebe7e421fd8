//! OTLP as JSON, rewritten as protocol buffers: then it is read as those are.
//!
//! Only what everybody writes is rewritten (ids in hexadecimal, times as numbers or in quotes, names
//! or numbers of kinds), and only what is read of it. Whatever else there may be, and what is no JSON,
//! is strange: the reference (`lineage/readers/otlp_json.py`) reads it.

use crate::wire::Strange;

/// How deep values may be inside one another; no exporter comes near.
const DEEPEST: usize = 32;

/// Digits of a number that are surely read as they are written.
const DIGITS: usize = 18;

type Done = Result<(), Strange>;

/// Rewrite a document.
///
/// # Errors
/// Strange: it is for the reference to judge.
pub fn rewritten(document: &[u8]) -> Result<Vec<u8>, Strange> {
    let text = std::str::from_utf8(document).map_err(|_| Strange)?;
    let (mut json, mut out) = (Json { rest: text.as_bytes() }, Vec::new());
    let mut seen = Seen::default();
    json.object(|json, key| match key {
        b"resourceSpans" => {
            seen.once(0)?;
            json.array(|json| framed(&mut out, 0x0a, |out| json.group(out)))
        }
        _ => Err(Strange),
    })?;
    json.space();
    if json.rest.is_empty() && seen.has(0) {
        Ok(out)
    } else {
        Err(Strange)
    }
}

/// Which members an object has had: nobody writes one twice.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn once(&mut self, member: u32) -> Done {
        let had = self.has(member);
        self.0 |= 1 << member;
        if had {
            Err(Strange)
        } else {
            Ok(())
        }
    }

    fn has(&self, member: u32) -> bool {
        self.0 & (1 << member) != 0
    }
}

/// Write something behind its tag and its length.
fn framed(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>) -> Done) -> Done {
    let begin = out.len();
    content(out)?;
    let mut length = out.len() - begin;
    let end = out.len();
    out.push(tag);
    while length > 0x7f {
        out.push(u8::try_from(length & 0x7f).map_err(|_| Strange)? | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).map_err(|_| Strange)?);
    let head = out.len() - end;
    out.get_mut(begin..).ok_or(Strange)?.rotate_right(head);
    Ok(())
}

/// A document from here on.
struct Json<'a> {
    rest: &'a [u8],
}

/// What is read of OTLP.
impl<'a> Json<'a> {
    fn group(&mut self, out: &mut Vec<u8>) -> Done {
        let mut seen = Seen::default();
        self.object(|json, key| match key {
            b"resource" => {
                seen.once(0)?;
                framed(out, 0x0a, |out| json.resource(out))
            }
            b"scopeSpans" => {
                seen.once(1)?;
                json.array(|json| framed(out, 0x12, |out| json.scope(out)))
            }
            b"scope_spans" | b"instrumentationLibrarySpans" => Err(Strange),
            _ => json.skip(0),
        })
    }

    /// Of a resource only the first name of the service is of interest.
    fn resource(&mut self, out: &mut Vec<u8>) -> Done {
        let (mut seen, mut named) = (Seen::default(), false);
        self.object(|json, key| match key {
            b"attributes" => {
                seen.once(0)?;
                json.array(|json| {
                    let begin = out.len();
                    let mut name = false;
                    framed(out, 0x0a, |out| {
                        name = json.pair(out, b"service.name")?;
                        Ok(())
                    })?;
                    if named || !name {
                        out.truncate(begin);
                    }
                    named |= name;
                    Ok(())
                })
            }
            _ => json.skip(0),
        })
    }

    fn scope(&mut self, out: &mut Vec<u8>) -> Done {
        let mut seen = Seen::default();
        self.object(|json, key| match key {
            b"spans" => {
                seen.once(0)?;
                json.array(|json| framed(out, 0x12, |out| json.span(out)))
            }
            b"scope" => {
                seen.once(1)?;
                framed(out, 0x0a, |out| json.scope_name(out))
            }
            b"instrumentationLibrary" => Err(Strange),
            _ => json.skip(0),
        })
    }

    fn scope_name(&mut self, out: &mut Vec<u8>) -> Done {
        let mut seen = Seen::default();
        self.object(|json, key| match key {
            b"name" => {
                seen.once(0)?;
                framed(out, 0x0a, |out| json.text(out))
            }
            _ => json.skip(0),
        })
    }

    fn span(&mut self, out: &mut Vec<u8>) -> Done {
        let mut seen = Seen::default();
        self.object(|json, key| {
            let member = match key {
                b"traceId" => 0,
                b"spanId" => 1,
                b"parentSpanId" => 2,
                b"name" => 3,
                b"kind" => 4,
                b"startTimeUnixNano" => 5,
                b"endTimeUnixNano" => 6,
                b"attributes" => 7,
                b"events" => 8,
                b"links" => 9,
                b"status" => 10,
                b"trace_id"
                | b"span_id"
                | b"parent_span_id"
                | b"start_time_unix_nano"
                | b"end_time_unix_nano" => return Err(Strange),
                _ => return json.skip(0),
            };
            seen.once(member)?;
            match member {
                0 => json.id(out, 0x0a, 16),
                1 => json.id(out, 0x12, 8),
                2 => json.id(out, 0x22, 8),
                3 => framed(out, 0x2a, |out| json.text(out)),
                4 => json.kind(out),
                5 => json.time(out, 0x39),
                6 => json.time(out, 0x41),
                7 => json.array(|json| framed(out, 0x4a, |out| json.pair(out, b"").map(drop))),
                8 => json.array(|json| json.event(out)),
                9 => json.array(|json| framed(out, 0x6a, |out| json.link(out))),
                _ => json.status(out),
            }
        })
    }

    /// An id in hexadecimal; nothing where it is empty.
    fn id(&mut self, out: &mut Vec<u8>, tag: u8, size: usize) -> Done {
        let digits = self.word()?;
        if digits.is_empty() {
            return Ok(());
        }
        if digits.len() != 2 * size {
            return Err(Strange);
        }
        framed(out, tag, |out| {
            for pair in digits.chunks_exact(2) {
                let [high, low] = *pair else { return Err(Strange) };
                out.push(nibble(high)? << 4 | nibble(low)?);
            }
            Ok(())
        })
    }

    fn kind(&mut self, out: &mut Vec<u8>) -> Done {
        let kind = match self.word_or_number()? {
            b"SPAN_KIND_UNSPECIFIED" | b"0" => 0,
            b"SPAN_KIND_INTERNAL" | b"1" => 1,
            b"SPAN_KIND_SERVER" | b"2" => 2,
            b"SPAN_KIND_CLIENT" | b"3" => 3,
            b"SPAN_KIND_PRODUCER" | b"4" => 4,
            b"SPAN_KIND_CONSUMER" | b"5" => 5,
            _ => return Err(Strange),
        };
        out.extend_from_slice(&[0x30, kind]);
        Ok(())
    }

    fn status(&mut self, out: &mut Vec<u8>) -> Done {
        let (mut seen, mut code) = (Seen::default(), 0);
        self.object(|json, key| match key {
            b"code" => {
                seen.once(0)?;
                code = match json.word_or_number()? {
                    b"STATUS_CODE_UNSET" | b"0" => 0,
                    b"STATUS_CODE_OK" | b"1" => 1,
                    b"STATUS_CODE_ERROR" | b"2" => 2,
                    _ => return Err(Strange),
                };
                Ok(())
            }
            _ => json.skip(0),
        })?;
        if code > 0 {
            out.extend_from_slice(&[0x7a, 2, 0x18, code]);
        }
        Ok(())
    }

    fn time(&mut self, out: &mut Vec<u8>, tag: u8) -> Done {
        let digits = std::str::from_utf8(self.word_or_number()?).map_err(|_| Strange)?;
        if digits.is_empty()
            || digits.len() > 20
            || !digits.bytes().all(|digit| digit.is_ascii_digit())
        {
            return Err(Strange);
        }
        let time: u64 = digits.parse().map_err(|_| Strange)?;
        out.push(tag);
        out.extend_from_slice(&time.to_le_bytes());
        Ok(())
    }

    /// Of an event only whether it is an exception.
    fn event(&mut self, out: &mut Vec<u8>) -> Done {
        let (mut seen, mut name) = (Seen::default(), Vec::new());
        self.object(|json, key| match key {
            b"name" => {
                seen.once(0)?;
                json.text(&mut name)
            }
            _ => json.skip(0),
        })?;
        if name == b"exception" {
            out.extend_from_slice(b"\x5a\x0b\x12\x09exception");
        }
        Ok(())
    }

    fn link(&mut self, out: &mut Vec<u8>) -> Done {
        let (mut seen, begin) = (Seen::default(), out.len());
        self.object(|json, key| match key {
            b"traceId" => {
                seen.once(0)?;
                json.id(out, 0x0a, 16)
            }
            b"spanId" => {
                seen.once(1)?;
                json.id(out, 0x12, 8)
            }
            b"trace_id" | b"span_id" => Err(Strange),
            _ => json.skip(0),
        })?;
        let written = out.get(begin..).ok_or(Strange)?;
        let id = |from: usize, size: usize| written.get(from..from + size).unwrap_or_default();
        // one that is missing, or all zeros, is for the reference to leave out
        let (first, second) = if written.first() == Some(&0x0a) { (16, 8) } else { (8, 16) };
        let whole = written.len() == 28;
        let some = |id: &[u8]| id.iter().any(|&byte| byte != 0);
        if whole && some(id(2, first)) && some(id(4 + first, second)) {
            Ok(())
        } else {
            Err(Strange)
        }
    }

    /// An attribute; whether it is of this name.
    fn pair(&mut self, out: &mut Vec<u8>, name: &[u8]) -> Result<bool, Strange> {
        let (mut seen, mut found) = (Seen::default(), false);
        self.object(|json, key| match key {
            b"key" => {
                seen.once(0)?;
                framed(out, 0x0a, |out| {
                    let begin = out.len();
                    json.text(out)?;
                    found = out.get(begin..) == Some(name);
                    Ok(())
                })
            }
            b"value" => {
                seen.once(1)?;
                framed(out, 0x12, |out| json.value(out, 0))
            }
            _ => json.skip(0),
        })?;
        if seen.has(0) {
            Ok(found)
        } else {
            Err(Strange)
        }
    }

    /// The value of an attribute; whatever it is called, its text is what counts.
    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Done {
        if depth > DEEPEST {
            return Err(Strange);
        }
        let mut seen = Seen::default();
        self.object(|json, key| {
            seen.once(0)?;
            match (json.next().ok_or(Strange)?, key) {
                (b'{', b"arrayValue") => framed(out, 0x2a, |out| json.list(out, depth)),
                (_, b"arrayValue" | b"array_value") | (b'n', _) => Err(Strange),
                (b'{' | b'[', _) => json.skip(depth),
                (b'"', _) => framed(out, 0x0a, |out| json.text(out)),
                (b't', _) => {
                    out.extend_from_slice(&[0x10, 1]);
                    json.literal(b"true")
                }
                (b'f', _) => {
                    out.extend_from_slice(&[0x10, 0]);
                    json.literal(b"false")
                }
                _ => json.scalar(out),
            }
        })
    }

    fn list(&mut self, out: &mut Vec<u8>, depth: usize) -> Done {
        let mut seen = Seen::default();
        self.object(|json, key| match key {
            b"values" => {
                seen.once(0)?;
                json.array(|json| framed(out, 0x0a, |out| json.value(out, depth + 1)))
            }
            _ => json.skip(depth),
        })
    }

    /// A number, as it is written where it is whole.
    fn scalar(&mut self, out: &mut Vec<u8>) -> Done {
        let digits = self.number()?;
        if digits.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            let text = std::str::from_utf8(digits).map_err(|_| Strange)?;
            let number: f64 = text.parse().map_err(|_| Strange)?;
            out.push(0x21);
            out.extend_from_slice(&number.to_le_bytes());
            return Ok(());
        }
        if digits == b"-0" || digits.len() > DIGITS {
            return Err(Strange);
        }
        framed(out, 0x0a, |out| {
            out.extend_from_slice(digits);
            Ok(())
        })
    }

    /// A string of plain letters, or a whole number, as it is written.
    fn word_or_number(&mut self) -> Result<&'a [u8], Strange> {
        if self.next() == Some(b'"') {
            self.word()
        } else {
            self.number()
        }
    }
}

fn nibble(digit: u8) -> Result<u8, Strange> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        b'A'..=b'F' => Ok(digit - b'A' + 10),
        _ => Err(Strange),
    }
}

/// JSON by itself.
impl<'a> Json<'a> {
    fn space(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn next(&mut self) -> Option<u8> {
        self.space();
        self.rest.first().copied()
    }

    /// Take this character, behind white space; whether it is there.
    fn took(&mut self, wanted: u8) -> bool {
        self.space();
        match self.rest {
            [first, rest @ ..] if *first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take(&mut self, wanted: u8) -> Done {
        if self.took(wanted) {
            Ok(())
        } else {
            Err(Strange)
        }
    }

    fn object(&mut self, mut member: impl FnMut(&mut Self, &[u8]) -> Done) -> Done {
        self.take(b'{')?;
        if self.took(b'}') {
            return Ok(());
        }
        loop {
            let key = self.word()?;
            self.take(b':')?;
            member(self, key)?;
            if !self.took(b',') {
                return self.take(b'}');
            }
        }
    }

    fn array(&mut self, mut element: impl FnMut(&mut Self) -> Done) -> Done {
        self.take(b'[')?;
        if self.took(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if !self.took(b',') {
                return self.take(b']');
            }
        }
    }

    /// A string up to its next escape or its end, whichever comes first, and which it was.
    #[inline]
    fn run(&mut self) -> Result<(&'a [u8], u8), Strange> {
        let end = self.rest.iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20);
        let (run, rest) = self.rest.split_at_checked(end.ok_or(Strange)?).ok_or(Strange)?;
        let (&stop, rest) = rest.split_first().ok_or(Strange)?;
        self.rest = rest;
        if stop < 0x20 {
            Err(Strange)
        } else {
            Ok((run, stop))
        }
    }

    /// A string without escapes.
    fn word(&mut self) -> Result<&'a [u8], Strange> {
        self.take(b'"')?;
        match self.run()? {
            (word, b'"') => Ok(word),
            _ => Err(Strange),
        }
    }

    fn text(&mut self, out: &mut Vec<u8>) -> Done {
        self.take(b'"')?;
        loop {
            let (run, stop) = self.run()?;
            out.extend_from_slice(run);
            if stop == b'"' {
                return Ok(());
            }
            let letter = self.escape()?;
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }

    fn skip_text(&mut self) -> Done {
        self.take(b'"')?;
        while self.run()?.1 != b'"' {
            self.escape()?;
        }
        Ok(())
    }

    /// What stands behind a backslash. Halves of a character without the other half are strange.
    fn escape(&mut self) -> Result<char, Strange> {
        let (&kind, rest) = self.rest.split_first().ok_or(Strange)?;
        self.rest = rest;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                if !(0xd800..0xe000).contains(&first) {
                    return char::from_u32(first).ok_or(Strange);
                }
                let Some(rest) = self.rest.strip_prefix(b"\\u") else { return Err(Strange) };
                self.rest = rest;
                let second = self.unit()?;
                if first >= 0xdc00 || !(0xdc00..0xe000).contains(&second) {
                    return Err(Strange);
                }
                let both = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                char::from_u32(both).ok_or(Strange)?
            }
            _ => return Err(Strange),
        })
    }

    fn unit(&mut self) -> Result<u32, Strange> {
        let (digits, rest) = self.rest.split_at_checked(4).ok_or(Strange)?;
        self.rest = rest;
        digits.iter().try_fold(0, |unit, &digit| Ok(unit << 4 | u32::from(nibble(digit)?)))
    }

    fn number(&mut self) -> Result<&'a [u8], Strange> {
        self.space();
        let all = self.rest;
        if let [b'-', rest @ ..] = self.rest {
            self.rest = rest;
        }
        let zero = self.rest.first() == Some(&b'0');
        if self.digits()? > 1 && zero {
            return Err(Strange);
        }
        if let [b'.', rest @ ..] = self.rest {
            self.rest = rest;
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = rest;
            if let [b'+' | b'-', rest @ ..] = self.rest {
                self.rest = rest;
            }
            self.digits()?;
        }
        all.get(..all.len() - self.rest.len()).filter(|text| text.len() < 40).ok_or(Strange)
    }

    fn digits(&mut self) -> Result<usize, Strange> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = self.rest.get(count..).unwrap_or_default();
        if count == 0 {
            Err(Strange)
        } else {
            Ok(count)
        }
    }

    fn literal(&mut self, word: &[u8]) -> Done {
        self.space();
        self.rest = self.rest.strip_prefix(word).ok_or(Strange)?;
        Ok(())
    }

    /// Pass over whatever comes; it has to be JSON all the same.
    fn skip(&mut self, depth: usize) -> Done {
        if depth > DEEPEST {
            return Err(Strange);
        }
        match self.next().ok_or(Strange)? {
            b'{' => self.object(|json, _| json.skip(depth + 1)),
            b'[' => self.array(|json| json.skip(depth + 1)),
            b'"' => self.skip_text(),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            _ => self.number().map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_writes_is_rewritten() {
        let document = br#"{"resourceSpans": [{"resource": {"attributes": [
            {"key": "host", "value": {"stringValue": "h"}},
            {"key": "service.name", "value": {"stringValue": "a"}}]}, "scopeSpans": [{"scope":
            {"version": "1", "name": "s"}, "spans": [{"spanId": "0102030405060708", "kind": "SPAN_KIND_SERVER", "flags": 1,
              "startTimeUnixNano": "5", "attributes": [{"key": "\u00e9", "value": {"intValue": "7"}}],
              "events": [{"name": "exception"}], "status": {"code": 2}}]}]}]}"#;
        let span = [
            &b"\x12\x08\x01\x02\x03\x04\x05\x06\x07\x08\x30\x02\x39\x05\0\0\0\0\0\0\0"[..],
            b"\x4a\x09\x0a\x02\xc3\xa9\x12\x03\x0a\x017\x5a\x0b\x12\x09exception\x7a\x02\x18\x02",
        ]
        .concat();
        let mut expected = Vec::new();
        let written = framed(&mut expected, 0x0a, |out| {
            out.extend_from_slice(b"\x0a\x15\x0a\x13\x0a\x0cservice.name\x12\x03\x0a\x01a");
            framed(out, 0x12, |out| {
                out.extend_from_slice(b"\x0a\x03\x0a\x01s");
                framed(out, 0x12, |out| {
                    out.extend_from_slice(&span);
                    Ok(())
                })
            })
        });
        assert_eq!(written, Ok(()));
        assert_eq!(rewritten(document), Ok(expected));
    }

    #[test]
    fn whatever_else_is_left_to_others() {
        for document in [
            "",
            "{",
            "[]",
            "{}",
            "{\"resourceSpans\": []} x",
            "{\"resourceSpans\": [], \"resourceSpans\": []}",
            "{\"resourceSpans\": [{\"x\": 01}]}",
            "{\"resourceSpans\": [{\"x\": \"\\ud800\"}]}",
            "{\"resourceSpans\": [{\"x\": NaN}]}",
            "{\"resourceSpans\": [{\"scope_spans\": []}]}",
            "{\"batches\": []}",
        ] {
            assert_eq!(rewritten(document.as_bytes()), Err(Strange), "{document}");
        }
        let deep = format!("{{\"resourceSpans\": [{{\"x\": {}", "[".repeat(100_000));
        assert_eq!(rewritten(deep.as_bytes()), Err(Strange));
        assert_eq!(rewritten(b"\xff"), Err(Strange));
    }
}
