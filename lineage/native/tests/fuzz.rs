//! Whatever comes in, it is read or left to the reference: nothing panics, and nothing that is read
//! depends on what was read before. For `FUZZ` seconds, 1 by default; seeded anew each time, and a
//! failure prints the body.

#![allow(clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]
#![allow(dead_code, clippy::missing_errors_doc)]

mod oracle;

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant, SystemTime};

use ldfi_native::json::rewritten;
use ldfi_native::memory::Memory;
use ldfi_native::reading::{read, Read};
use oracle::{attribute, field, request, span, varint, wanted, Counting};

/// Small and good enough (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len());
        items.get(at).expect("there is one")
    }
}

fn corpus() -> Vec<Vec<u8>> {
    let urls = ["http://h:80/a/123?x=/9", "/é/7", "//", "", "http://", "?/5", "/0f8fad5b/#/1"];
    let mut attributes: Vec<_> = urls.iter().map(|url| attribute("http.url", url)).collect();
    attributes.push(attribute("url.path", &"/123".repeat(80)));
    attributes.push([field(1, b"peer"), field(2, &[0x18, 5])].concat());
    attributes.push([field(2, &field(1, b"late")), field(1, b"peer")].concat());
    let odd = [span(2, "é", &attributes), field(11, b"\x12\x09exception"), field(13, &[0; 4])];
    let scopes = field(1, &field(1000, &field(2, &span(3, "old", &[]))));
    vec![
        request(&[span(1, "GET", &attributes), odd.concat()]),
        [request(&[span(4, "", &[])]), scopes].concat(),
        varint(u64::MAX),
        vec![],
    ]
}

const DOCUMENT: &[u8] = br#"{"resourceSpans": [{"resource": {"attributes": [{"key": "service.name",
    "value": {"stringValue": "a\u00e9"}}]}, "scopeSpans": [{"scope": null, "spans": [{"traceId":
    "01010101010101010101010101010101", "spanId": "0202020202020202", "kind": 3, "name": "\n",
    "startTimeUnixNano": "17", "attributes": [{"key": "http.url", "value": {"arrayValue":
    {"values": [{"doubleValue": -1.5e3}, {"boolValue": true}]}}}], "events": [{"name": "exception"}],
    "links": [{"traceId": "01010101010101010101010101010101", "spanId": "0202020202020202"}],
    "status": {"code": 2}}]}]}]}"#;

/// What is rewritten from JSON is right, and no longer than that was.
fn rewrite(body: &[u8]) -> bool {
    let Ok(written) = rewritten(body) else { return false };
    assert!(written.len() <= body.len());
    assert!(read(&written, &mut Memory::new(&wanted())).is_ok());
    true
}

fn mutate(body: &mut Vec<u8>, random: &mut Random, corpus: &[Vec<u8>]) {
    for _ in 0..=random.below(4) {
        let at = random.below(body.len() + 1);
        match random.below(6) {
            0 => body.truncate(at),
            1 => body.insert(at, random.below(256) as u8),
            2 if at < body.len() => drop(body.remove(at)),
            3 => body.splice(at..at, varint(1 << random.below(64))).for_each(drop),
            4 => {
                let other = random.one_of(corpus);
                let from = random.below(other.len() + 1);
                let some = other.get(from..).unwrap_or_default().to_vec();
                body.splice(at..at, some).for_each(drop);
            }
            _ => {
                if let Some(byte) = body.get_mut(at) {
                    *byte = *random.one_of(&[0, 1, 8, 10, 18, 127, 128, 255, 98, 90]);
                }
            }
        }
    }
    body.truncate(1 << 14);
}

fn said(found: &Read) -> (usize, usize, Vec<(u64, u64)>) {
    let times = found.spans.iter().map(|span| (span.start, span.end)).collect();
    (found.spans.len(), found.rejected, times)
}

#[test]
fn no_body_breaks_it() {
    let seconds = std::env::var("FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let until = Instant::now() + Duration::from_secs(seconds);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    let mut random = Random(now.as_nanos() as u64 | 1);
    let (mut corpus, mut known) = (corpus(), Memory::new(&wanted()));
    let (mut oracle, mut bodies, mut good) = (Counting::default(), 0_u64, 0_u64);
    let mut documents = 0_u64;
    while Instant::now() < until {
        let mut body = random.one_of(&corpus).clone();
        if random.below(4) == 0 {
            body = DOCUMENT.to_vec();
        }
        mutate(&mut body, &mut random, &corpus);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut fresh = Memory::new(&wanted());
            let first = read(&body, &mut fresh).map(|found| said(&found));
            let second = read(&body, &mut known);
            assert_eq!(first, second.as_ref().map(said).map_err(|strange| *strange));
            let right = second.is_ok();
            documents += u64::from(rewrite(&body));
            if let Ok(mut found) = second {
                found.ask(&mut known, &mut oracle).expect("it always answers");
                assert!(found
                    .spans
                    .iter()
                    .all(|span| span.operation > 0 && span.start <= span.end));
                assert!(found.spans.len() * 30 <= body.len());
            }
            right
        }));
        let Ok(right) = result else { panic!("this body breaks it: {body:?}") };
        bodies += 1;
        good += u64::from(right);
        if right && corpus.len() < 1_000 {
            corpus.push(body);
        }
        if known.is_full() {
            known.forget();
        }
    }
    println!("{bodies} bodies, {good} of them right, {documents} as JSON");
    assert!(good > 10 && good < bodies && documents > 10);
}
