//! Assertions on a JSON body.

use std::collections::BTreeMap;

use plimsoll_domain::plan::Assertion;
use serde_json::Value;

/// Longest piece of a body or value in a message, in characters.
const SHOWN: usize = 200;

/// The first assertion that does not hold, as a phrase.
pub(super) fn check(assertions: &BTreeMap<String, Assertion>, body: &[u8]) -> Result<(), String> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|e| format!("the answer is not JSON ({e}); the body is {}", excerpt(body)))?;
    for (pointer, assertion) in assertions {
        holds(&value, pointer, assertion)?;
    }
    Ok(())
}

fn holds(body: &Value, pointer: &str, assertion: &Assertion) -> Result<(), String> {
    let Some(found) = body.pointer(pointer) else {
        return Err(format!("nothing at {}; the body is {}", name(pointer), shown(body)));
    };
    match assertion {
        Assertion::Exists => Ok(()),
        Assertion::Equals(wanted) if same(wanted, found) => Ok(()),
        Assertion::Equals(wanted) => Err(format!("{} is {}, expected {}", name(pointer), shown(found), shown(wanted))),
        Assertion::Length(wanted) => match length(found) {
            Some(is) if is == *wanted => Ok(()),
            Some(is) => Err(format!("{} has length {is}, expected {wanted}", name(pointer))),
            None => Err(format!("{} is {}, expected a length of {wanted}", name(pointer), shown(found))),
        },
    }
}

/// Equality in which numbers compare by value: 1 is 1.0.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => x == y || (x.as_f64().is_some() && x.as_f64() == y.as_f64()),
        (Value::Array(x), Value::Array(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same(x, y)),
        (Value::Object(x), Value::Object(y)) => {
            x.len() == y.len() && x.iter().all(|(key, x)| y.get(key).is_some_and(|y| same(x, y)))
        }
        _ => a == b,
    }
}

fn length(value: &Value) -> Option<u64> {
    match value {
        Value::Array(items) => Some(items.len() as u64),
        Value::Object(fields) => Some(fields.len() as u64),
        Value::String(text) => Some(text.chars().count() as u64),
        _ => None,
    }
}

fn name(pointer: &str) -> &str {
    if pointer.is_empty() { "the whole answer" } else { pointer }
}

fn shown(value: &Value) -> String {
    cut(&value.to_string())
}

/// The beginning of a body for a message, without control characters.
pub(crate) fn excerpt(body: &[u8]) -> String {
    if body.is_empty() {
        return "empty".to_owned();
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)]);
    cut(&text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(pointer: &str, assertion: Assertion, body: &str) -> Result<(), String> {
        check(&BTreeMap::from([(pointer.to_owned(), assertion)]), body.as_bytes())
    }

    #[test]
    fn assertions_hold_by_value() {
        let body = r#"{"label":"positive","score":0.5,"n":3,"items":[1,2.0],"none":null,"a/b":{"":1},"text":"héé"}"#;
        for (pointer, assertion) in [
            ("/label", Assertion::Equals(json!("positive"))),
            ("/n", Assertion::Equals(json!(3.0))),
            ("/items", Assertion::Equals(json!([1.0, 2]))),
            ("/items", Assertion::Length(2)),
            ("/text", Assertion::Length(3)),
            ("/none", Assertion::Exists),
            ("/a~1b/", Assertion::Equals(json!(1))),
            ("", Assertion::Exists),
        ] {
            assert_eq!(verdict(pointer, assertion.clone(), body), Ok(()), "{pointer} {assertion:?}");
        }
    }

    #[test]
    fn what_does_not_hold_is_said() {
        let body = r#"{"label":"negative","n":3}"#;
        let said = |pointer, assertion| verdict(pointer, assertion, body).unwrap_err();
        assert_eq!(
            said("/label", Assertion::Equals(json!("positive"))),
            r#"/label is "negative", expected "positive""#
        );
        assert_eq!(said("/score", Assertion::Exists), r#"nothing at /score; the body is {"label":"negative","n":3}"#);
        assert_eq!(said("/label", Assertion::Length(3)), "/label has length 8, expected 3");
        assert_eq!(said("/n", Assertion::Length(3)), "/n is 3, expected a length of 3");
        let cut_off = verdict("/a", Assertion::Exists, r#"{"a":"#).unwrap_err();
        assert!(cut_off.starts_with("the answer is not JSON (EOF"), "{cut_off}");
        assert!(cut_off.ends_with(r#"the body is {"a":"#), "{cut_off}");
    }

    #[test]
    fn messages_are_bounded_and_clean() {
        let long = excerpt(format!("a\r\n\u{1b}[31m{}", "é".repeat(10_000)).as_bytes());
        assert!(long.chars().count() == SHOWN + 1 && !long.contains(char::is_control), "{long}");
        assert_eq!(excerpt(b""), "empty");
    }
}
