//! Plans of which no request could be sent.

use super::*;

#[test]
fn what_cannot_be_sent_is_refused() {
    insta::assert_snapshot!(messages(&[
        "",
        "project = \"p\"\n",
        "project = \"p\"\n[service]\nmethod = \"GET\"\n",
        "project = \"My Service\"\n[service]\nurl = \"http://h/\"\n",
        "project = \"p\"\n[service]\nurl = \"ftp://h/\"\n",
        "project = \"p\"\n[service]\nurl = \"h:8000/predict\"\n",
        "project = \"p\"\n[service]\nurl = \"http://user:secret@h/\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nmethod = \"POTS\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { authorization = \"Bearer ${NOPE}\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { content-length = \"5\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { \"a b\" = \"5\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nmethod = \"GET\"\n[workload]\nbody = \"x\"\n",
        "project = \"p\nprofile = \"quick\"\n",
        "project = \"p\"\nproject = \"q\"\n",
        "profile = \"quik\"\nproject = \"p\"\n",
    ]), @r#"
    error: plimsoll.toml: `project` is missing
      → add `project = "my-service"` at the top

    error: plimsoll.toml: [service] with `url` is missing
      → add
        [service]
        url = "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:2:2: [service] lacks `url`
        |
      2 | [service]
        |  ^^^^^^^
      → add `url = "http://127.0.0.1:8000/predict"` to it

    error: plimsoll.toml:1:11: `project` is wrong: project "My Service": use 1 to 64 lower-case letters, digits, '-', '_' or '.', starting with a letter or digit
        |
      1 | project = "My Service"
        |           ^^^^^^^^^^^^

    error: plimsoll.toml:3:7: `service.url` has the scheme `ftp`; plimsoll speaks http and https
        |
      3 | url = "ftp://h/"
        |       ^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:3:7: `service.url` needs a scheme: http:// or https://
        |
      3 | url = "h:8000/predict"
        |       ^^^^^^^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:3:7: `service.url` must not carry a user name or password; send them as a header
        |
      3 | url = "http://user:secret@h/"
        |       ^^^^^^^^^^^^^^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:4:10: `service.method` is no method plimsoll sends: "POTS"
        |
      4 | method = "POTS"
        |          ^^^^^^
      → did you mean POST?

    error: plimsoll.toml:4:29: `service.headers.authorization` needs the environment variable NOPE, which is not set
        |
      4 | headers = { authorization = "Bearer ${NOPE}" }
        |                             ^^^^^^^^^^^^^^^^
      → export NOPE=…

    error: plimsoll.toml:4:13: plimsoll writes the header `content-length` itself
        |
      4 | headers = { content-length = "5" }
        |             ^^^^^^^^^^^^^^
      → for `connection: close` set keep_alive = false in [service]

    error: plimsoll.toml:4:13: "a b" is no name of a header
        |
      4 | headers = { "a b" = "5" }
        |             ^^^^^

    error: plimsoll.toml:4:10: `service.method` is GET, but [workload] has a body
        |
      4 | method = "GET"
        |          ^^^^^
      → use POST, or take the body out

    error: plimsoll.toml:1:13: not TOML: invalid basic string, expected `"`
        |
      1 | project = "p
        |             ^

    error: plimsoll.toml:2:1: not TOML: duplicate key
        |
      2 | project = "q"
        | ^^^^^^^

    error: plimsoll.toml:1:11: `profile` is no profile: "quik"
        |
      1 | profile = "quik"
        |           ^^^^^^
      → did you mean "quick"?
    "#);
}
