//! Every target is tried on its corpus and on inputs made out of it. A failure prints the input and how to keep it.

#![allow(clippy::print_stdout, clippy::panic, reason = "a test says what it did, and fails by a panic")]

use std::collections::BTreeSet;

use muster_fuzz::driver::{Finding, Limits, Tried, run};
use muster_fuzz::{TARGETS, find};

fn try_target(name: &str) {
    let target = find(name).unwrap_or_else(|| panic!("there is no target {name}"));
    match run(target, &Limits::default()) {
        Ok(Tried { corpus, made }) => {
            println!("{name}: {corpus} inputs of the corpus and {made} made out of them");
            assert!(made > 0, "{name}: no input was made");
        }
        Err(finding) => panic!("{}", report(name, target.property, &finding)),
    }
}

/// What is needed to play a finding again and to keep it.
fn report(name: &str, property: &str, finding: &Finding) -> String {
    let Finding { why, input, origin } = finding;
    let escapes = input.escape_ascii().to_string().replace('%', "%%").replace("\\'", "\\x27");
    let shown = String::from_utf8_lossy(input);
    format!(
        "{name}: {why}\nit must hold that {property}\nthe input ({origin}, {} bytes):\n{shown}\n\
         to keep it: printf '{escapes}' > fuzz/findings/{name}/NAME, and fuzz/corpus/{name}/NAME once it is mended",
        input.len()
    )
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                try_target(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_tried() {
            let tried = BTreeSet::from([$(stringify!($name)),*]);
            let known: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(tried, known);
            assert_eq!(known.len(), TARGETS.len(), "two targets have one name");
        }
    };
}

targets! {
    object_json object_yaml object_update
    patch_merge patch_strategic patch_json apply
    request query page protobuf
    merging ownership
    label_selector field_selector tag_selector name_pattern
    cel cel_template
    time_spec scalars schema
    mqtt frames
    archive_tar archive_tar_gz archive_zip bucket
    backup store_rows sqlite
}
