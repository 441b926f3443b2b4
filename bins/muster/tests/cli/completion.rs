//! `muster completion` and the help.

use crate::world::World;

#[test]
fn every_shell_gets_a_script_that_knows_the_verbs() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = world.muster(&["completion", shell]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{shell}");
        for word in ["apply", "describe", "kubeconfig", "top", "field-selector", "as-kubeconfig"] {
            assert!(said.out.contains(word), "{shell} does not know {word}");
        }
    }
    world.muster(&["completion", "ksh"]).is_misuse("[possible values: bash, elvish, fish, powershell, zsh]");
}

#[test]
fn every_verb_has_help() {
    let world = World::new();
    let verbs =
        ["up", "top", "apply", "get", "describe", "delete", "kubeconfig", "token", "completion", "version"];
    let help = world.muster(&["--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for verb in verbs {
        assert!(help.out.contains(&format!("\n  {verb} ")), "{verb} is not in the help");
        let said = world.muster(&[verb, "--help"]);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{verb}");
        assert!(said.out.contains("Usage: muster "), "{verb}: {}", said.out);
        let has_examples = verb != "version";
        assert_eq!(said.out.contains("Examples:\n  "), has_examples, "{verb}");
    }
    let said = world.muster(&[]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("Usage: muster"), "{}", said.err);
}
