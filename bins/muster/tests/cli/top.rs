//! `muster top` where there is no terminal; how it looks on one is shown in `e2e/tests/top`.

use crate::world::{Served, World};

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    World::new().muster(&["top"]).fails(
        "top draws on a terminal, and standard output is none; `muster watch` prints each change as a line",
    );
}

#[test]
fn its_help_tells_the_keys() {
    let served = Served::new();
    let help = served.muster(&["top", "--help"]);
    assert_eq!(help.code, 0, "{}", help.err);
    for word in ["Enter opens a task", "--all-namespaces", "NO_COLOR", "muster watch"] {
        assert!(help.out.contains(word), "{word}: {}", help.out);
    }
}
