//! What is asked, how often, and what is remembered.

#![allow(clippy::expect_used, clippy::panic, clippy::cast_possible_truncation)]
#![allow(dead_code, clippy::missing_errors_doc)]

mod oracle;

use ldfi_native::memory::Memory;
use ldfi_native::reading::read;
use ldfi_native::wire::Strange;
use oracle::{attribute, field, request, span, wanted, Counting};

fn operations(body: &[u8], memory: &mut Memory, oracle: &mut Counting) -> Vec<u32> {
    let mut found = read(body, memory).expect("a right body");
    found.ask(memory, oracle).expect("it always answers");
    found.spans.iter().map(|span| span.operation).collect()
}

#[test]
fn what_was_asked_once_is_not_asked_again() {
    let (mut memory, mut oracle) = (Memory::new(&wanted()), Counting::default());
    let url = |number: u64| attribute("http.url", &format!("http://host/titles/{number}"));
    let first = operations(&request(&[span(1, "GET", &[url(100)])]), &mut memory, &mut oracle);
    assert_eq!(oracle.asked, 4); // the service, the value, the operation with and without exception
    for number in 101..200 {
        let body = request(&[span(number, "GET", &[url(number), attribute("thread", "x")])]);
        let again = operations(&body, &mut memory, &mut oracle);
        assert_eq!(again.len(), 1);
        assert!(number > 101 || again != first); // another attribute, one that says nothing
    }
    assert_eq!(oracle.asked, 6);
}

#[test]
fn an_exception_is_seen_in_whichever_event_it_is() {
    let (mut memory, mut oracle) = (Memory::new(&wanted()), Counting::default());
    let event = |name: &str| field(11, &field(2, name.as_bytes()));
    let plain = span(1, "GET", &[]);
    let calm = [span(1, "GET", &[]), event("handled")].concat();
    let thrown = [span(1, "GET", &[]), event("handled"), event("exception")].concat();
    let found = operations(&request(&[plain, calm, thrown]), &mut memory, &mut oracle);
    assert_eq!(found.len(), 3);
    assert_eq!(found.first(), found.get(1));
    assert_ne!(found.first(), found.get(2));
}

#[test]
fn ids_and_times_decide_what_is_rejected() {
    let mut memory = Memory::new(&wanted());
    let right = span(1, "GET", &[]);
    let nameless = span(0, "GET", &[]);
    let found = read(&request(&[right, nameless, vec![]]), &mut memory)
        .map(|found| (found.spans.len(), found.rejected));
    assert_eq!(found, Ok((1, 2)));
}

#[test]
fn bodies_that_are_none_are_left_to_the_reference() {
    let mut memory = Memory::new(&wanted());
    for body in [&b"no protobuf"[..], b"\x12\x00", b"\x0a\x05", b"\x0b\x0c"] {
        assert_eq!(read(body, &mut memory).err(), Some(Strange), "{body:?}");
    }
    assert!(read(b"", &mut memory).is_ok_and(|found| found.spans.is_empty()));
}

#[test]
fn long_values_fill_the_memory_sooner() {
    let (mut memory, mut oracle) = (Memory::new(&wanted()), Counting::default());
    for number in 0..200 {
        let name = format!("{number}{}", "x".repeat(1 << 20));
        operations(&request(&[span(1, &name, &[])]), &mut memory, &mut oracle);
        if memory.is_full() {
            return;
        }
    }
    panic!("it holds 200 MB of names");
}

#[test]
fn memory_is_bounded_and_begins_anew() {
    let (mut memory, mut oracle) = (Memory::new(&wanted()), Counting::default());
    let body = request(&[span(1, "GET", &[])]);
    operations(&body, &mut memory, &mut oracle);
    let mut bodies = 0;
    while !memory.is_full() {
        bodies += 1;
        assert!(bodies < 400, "it never forgets");
        let spans: Vec<_> =
            (0..1_000).map(|each| span(1, &format!("{bodies}/{each}"), &[])).collect();
        operations(&request(&spans), &mut memory, &mut oracle);
    }
    memory.forget();
    assert!(!memory.is_full());
    let before = oracle.asked;
    operations(&body, &mut memory, &mut oracle);
    assert_eq!(oracle.asked, before + 3);
}
