use proptest::prelude::*;

use super::*;

fn read(bytes: &[u8]) -> Vec<Event> {
    Reader::new(1_000).read(bytes).unwrap()
}

fn event(name: &str, data: &str, id: &str) -> Event {
    Event { name: name.to_owned(), data: data.to_owned(), id: id.to_owned() }
}

/// The standard's own examples.
#[test]
fn the_standard_s_examples_read_as_it_says() {
    let stock = b"data: YHOO\ndata: +2\ndata: 10\n\n";
    assert_eq!(read(stock), [event("message", "YHOO\n+2\n10", "")]);
    let four = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    let expected = [
        event("message", "first event", "1"),
        event("message", "second event", ""),
        event("message", " third event", ""),
    ];
    assert_eq!(read(four), expected);
    assert_eq!(read(b"data\n\ndata\ndata\n\ndata:"), [event("message", "", ""), event("message", "\n", "")]);
    assert_eq!(read(b"data:test\n\ndata: test\n\n"), [event("message", "test", ""), event("message", "test", "")]);
}

#[test]
fn lines_end_by_any_of_the_three_ends() {
    for end in ["\n", "\r", "\r\n"] {
        let text = ["event: add", "data: 1", "data: 2", "", "data: 3", "", ""].join(end);
        assert_eq!(read(text.as_bytes()), [event("add", "1\n2", ""), event("message", "3", "")], "{end:?}");
    }
    assert_eq!(read(b"data: a\r\n\ndata: b\r\r"), [event("message", "a", ""), event("message", "b", "")]);
}

#[test]
fn an_event_is_there_as_soon_as_its_blank_line_is() {
    let mut reader = Reader::new(100);
    assert_eq!(reader.read(b"data: a\r\n\r").unwrap(), [event("message", "a", "")]);
    assert_eq!(reader.read(b"\n").unwrap(), [], "the rest of the same line end");
    assert_eq!(reader.read(b"data: b\r\n\r\n").unwrap(), [event("message", "b", "")]);
}

#[test]
fn ids_stay_and_odd_fields_do_nothing() {
    let text = b"id: 7\n\ndata: a\n\nid: 8\0\ndata: b\n\nid:\nDATA: x\nwhat: y\n:c\ndata: c\n\n";
    assert_eq!(read(text), [event("message", "a", "7"), event("message", "b", "7"), event("message", "c", "")]);
    let mut reader = Reader::new(100);
    reader.read(b"retry: 1500\n").unwrap();
    reader.read(b"retry: 2s\nretry: -1\nretry:\nretry: 99999999999999999999999\nevent: gone\n\n").unwrap();
    assert_eq!(reader.retry(), Some(Duration::from_millis(1_500)));
    assert_eq!(reader.read(b"data: a\n\n").unwrap(), [event("message", "a", "")], "an event without data is none");
}

#[test]
fn one_byte_order_mark_is_taken_away_and_broken_text_is_replaced() {
    assert_eq!(read(b"\xef\xbb\xbfdata: a\n\n"), [event("message", "a", "")]);
    assert_eq!(read(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n"), [], "the second belongs to the field's name");
    assert_eq!(read(b"\n\xef\xbb\xbfdata: a\n\n"), []);
    assert_eq!(read(b"data: \xff\xc3\ndata: \xc3\xa9\n\n"), [event("message", "\u{fffd}\u{fffd}\né", "")]);
}

#[test]
fn what_is_too_long_is_an_error_and_not_an_endless_wait() {
    let reader = || Reader::new(100);
    assert_eq!(reader().read(&[b'a'; 101]), Err(TooLong(100)));
    assert_eq!(reader().read(&b"data: 12345\n".repeat(20)), Err(TooLong(100)));
    assert_eq!(reader().read(&b":".repeat(99)), Ok(vec![]));
    let mut long = reader();
    for _ in 0..50 {
        assert_eq!(long.read(b"data: 1234567890\n\n").unwrap().len(), 1, "each is short");
    }
}

/// Lines as a stream may hold them, by chance.
fn lines() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"data".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"id: ".to_vec()),
        Just(b"event:".to_vec()),
        Just(b":".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just("é✓".as_bytes().to_vec()),
        Just(MARK.to_vec()),
        proptest::collection::vec(any::<u8>(), 0..4),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// The standard's algorithm on the whole text at once.
fn by_the_book(bytes: &[u8]) -> Vec<Event> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let (mut events, mut id, mut name, mut data) = (Vec::new(), "", "", None::<String>);
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.take() {
                let name = if name.is_empty() { "message" } else { name };
                events.push(event(name, data.strip_suffix('\n').unwrap(), id));
            }
            name = "";
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => *data.get_or_insert_default() += &format!("{value}\n"),
            "event" => name = value,
            "id" if !value.contains('\0') => id = value,
            _ => {}
        }
    }
    events
}

proptest! {
    #[test]
    fn cuts_do_not_matter(bytes in lines(), cuts in proptest::collection::vec(0usize..400, 0..20)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut reader = Reader::new(10_000);
        let mut events = Vec::new();
        let mut from = 0;
        for to in cuts.into_iter().chain([bytes.len()]) {
            events.extend(reader.read(&bytes[from..to]).unwrap());
            from = to;
        }
        prop_assert_eq!(events, by_the_book(&bytes));
    }
}
