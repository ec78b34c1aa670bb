//! Values of the wrong type, or that cannot be.

use super::*;

#[test]
fn wrong_types_and_impossible_values_say_what_to_do() {
    insta::assert_snapshot!(messages_after(&[
        "[stability]\nworkers = 0\n",
        "[stability]\nduration = \"-5s\"\n",
        "[stability]\nduration = \"0s\"\n",
        "[stability]\nduration = \"5\"\n",
        "[stability]\nduration = 5\n",
        "[stability]\nknee_fraction = 1.5\n",
        "[staircase]\nworkers = [5, 20, 10]\n",
        "[staircase]\nworkers = []\n",
        "[staircase]\nworkers = [5, 0]\n",
        "[staircase]\nstep = \"20s\"\nramp_up = \"6s\"\n",
        "[staircase]\nmax_workers = 50\n",
        "[staircase]\nmax_error_rate = 0.01\n",
        "[staircase]\nsearch = \"yes\"\n",
        "[workload]\nbody = \"a\"\nfile = \"b\"\n",
        "[workload]\nbody = 5\n",
        "[workload]\nexpect_status = 20\n",
        "[workload.expect]\nlabel = 1\n",
        "[workload.expect]\n\"/a\" = { exists = true, length = 1 }\n",
        "[gate]\np99 = \"10%\"\n",
        "[gate]\nerror_rate = { max_increase = \"0.1%\" }\n",
    ]), @r#"
    error: plimsoll.toml:5:11: `stability.workers` must be from 1 to 100000, not 0
        |
      5 | workers = 0
        |           ^

    error: plimsoll.toml:5:12: `stability.duration` cannot be negative: "-5s"
        |
      5 | duration = "-5s"
        |            ^^^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` must be at least 1s, not "0s"
        |
      5 | duration = "0s"
        |            ^^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` has no unit: "5"
        |
      5 | duration = "5"
        |            ^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` must be a duration in quotes, not a whole number
        |
      5 | duration = 5
        |            ^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:17: `stability.knee_fraction` must be above 0 and at most 1.0, not 1.5
        |
      5 | knee_fraction = 1.5
        |                 ^^^

    error: plimsoll.toml:5:11: `staircase.workers` must rise from step to step, but 10 follows 20
        |
      5 | workers = [5, 20, 10]
        |           ^^^^^^^^^^^
      → for example [5, 10, 20, 50, 100]

    error: plimsoll.toml:5:11: `staircase.workers` is empty: name at least one number of workers
        |
      5 | workers = []
        |           ^^
      → for example [5, 10, 20, 50, 100]

    error: plimsoll.toml:5:15: `staircase.workers` must be from 1 to 100000, not 0
        |
      5 | workers = [5, 0]
        |               ^

    error: plimsoll.toml:6:11: `staircase.ramp_up` takes more than a quarter of `step`, which is 20s
        |
      6 | ramp_up = "6s"
        |           ^^^^
      → make the ramp-up shorter or the step longer

    error: plimsoll.toml:5:15: `staircase.max_workers` is 50, but the staircase goes to 100
        |
      5 | max_workers = 50
        |               ^^

    error: plimsoll.toml:5:18: `staircase.max_error_rate` must be text in quotes, not a decimal number
        |
      5 | max_error_rate = 0.01
        |                  ^^^^
      → write a percentage in quotes, for example "5%"

    error: plimsoll.toml:5:10: `staircase.search` must be true or false, not text
        |
      5 | search = "yes"
        |          ^^^^^

    error: plimsoll.toml:6:1: [workload] has both `body` and `file`
        |
      6 | file = "b"
        | ^^^^
      → keep one of them

    error: plimsoll.toml:5:8: `workload.body` must be text, a table or a list, not a whole number
        |
      5 | body = 5
        |        ^

    error: plimsoll.toml:5:17: `workload.expect_status` must be from 100 to 599, not 20
        |
      5 | expect_status = 20
        |                 ^^

    error: plimsoll.toml:5:1: `label` is no JSON pointer: it must start with `/`
        |
      5 | label = 1
        | ^^^^^
      → write "/label" = …

    error: plimsoll.toml:5:8: `workload.expect./a` takes exactly one of `exists`, `length` and `equals`
        |
      5 | "/a" = { exists = true, length = 1 }
        |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: plimsoll.toml:5:7: `gate.p99` must be a table, not text
        |
      5 | p99 = "10%"
        |       ^^^^^
      → write p99 = { max_increase = "10%" }

    error: plimsoll.toml:5:31: `gate.error_rate.max_increase` must be percentage points, not "0.1%"
        |
      5 | error_rate = { max_increase = "0.1%" }
        |                               ^^^^^^
      → write "0.1pp": an error rate is compared by its difference, in percentage points
    "#);
}
