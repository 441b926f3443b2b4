//! Which addon and which extensions a task gets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use muster_tasks::select::{Catalog, SelectError, Selection};
use muster_types::addon::AddonSpec;
use muster_types::application::Tag;
use muster_types::condition::{Condition, ConditionStatus};
use muster_types::container::Container;
use muster_types::extension::ExtensionSpec;
use muster_types::task_kind::TaskKindSpec;
use muster_types::{Addon, Extension, TaskKind, TaskSpec, Timestamp};
use proptest::prelude::*;

fn addon(name: &str, task: &str, selector: &str) -> Addon {
    let mut addon = Addon::new("default", name, AddonSpec::default());
    (addon.spec.task, addon.spec.selector) = (task.to_owned(), selector.to_owned());
    addon
}

fn extension(name: &str, of: &str, selector: &str) -> Extension {
    let mut extension = Extension::new("default", name, ExtensionSpec::default());
    (extension.spec.addon, extension.spec.selector) = (of.to_owned(), selector.to_owned());
    extension
}

fn ready(status: ConditionStatus, message: &str) -> Condition {
    Condition::new("Ready", status, "Checked", message, Timestamp::from_second(1))
}

fn catalog(
    addons: impl IntoIterator<Item = Addon>,
    extensions: impl IntoIterator<Item = Extension>,
) -> Catalog {
    let mut catalog = Catalog::default();
    addons.into_iter().for_each(|addon| catalog.put_addon(addon));
    extensions.into_iter().for_each(|extension| catalog.put_extension(extension));
    catalog
}

fn of_kind(kind: &str) -> TaskSpec {
    TaskSpec { kind: kind.to_owned(), ..TaskSpec::default() }
}

fn of_addon(addon: &str) -> TaskSpec {
    TaskSpec { addon: addon.to_owned(), ..TaskSpec::default() }
}

fn with_extensions(mut task: TaskSpec, names: &[&str]) -> TaskSpec {
    task.extensions = Some(names.iter().map(|name| (*name).to_owned()).collect());
    task
}

/// Tags are written `Category=Tag`, separated by commas.
fn tags(text: &str) -> Vec<Tag> {
    let tag = |text: &str| {
        let (category, tag) = text.split_once('=').unwrap();
        Tag { category: category.to_owned(), tag: tag.to_owned() }
    };
    text.split(',').filter(|text| !text.is_empty()).map(tag).collect()
}

fn select<'c>(catalog: &'c Catalog, task: &TaskSpec, on: &str) -> Result<Selection<'c>, SelectError> {
    let kind = TaskKind::new("default", &task.kind, TaskKindSpec::default());
    catalog.select(task, (!task.kind.is_empty()).then_some(&kind), &tags(on))
}

/// `addon + extension + extension`, or the reason and the words of the refusal.
fn chosen(catalog: &Catalog, task: &TaskSpec, on: &str) -> String {
    match select(catalog, task, on) {
        Ok(selection) => {
            let addon = selection.addon.map_or("-", |addon| &addon.metadata.name);
            let extensions = selection.extensions.iter().map(|extension| extension.metadata.name.as_str());
            [addon].into_iter().chain(extensions).collect::<Vec<_>>().join(" + ")
        }
        Err(error) => format!("{}: {error}", error.reason()),
    }
}

mod addons {
    use super::*;

    #[test]
    fn an_addon_that_is_named_is_taken_whatever_it_says_it_serves() {
        let catalog = catalog([addon("java", "analyzer", "tag:Language=Java")], []);
        assert_eq!(chosen(&catalog, &of_addon("java"), ""), "java");
        let broken = super::catalog([addon("java", "(", "nonsense")], []);
        assert_eq!(chosen(&broken, &of_addon("java"), ""), "java");
    }

    #[test]
    fn an_addon_that_is_named_and_does_not_exist_is_told() {
        assert_eq!(
            chosen(&catalog([], []), &of_addon("java"), ""),
            "AddonNotFound: addon \"java\" does not exist; create it, or submit the task again with another spec.addon"
        );
    }

    #[test]
    fn the_addon_of_a_kind_is_chosen_by_name_or_pattern() {
        let catalog =
            catalog([addon("one", "analyzer", ""), addon("many", "(tech|language)-discovery", "")], []);
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), ""), "one");
        assert_eq!(chosen(&catalog, &of_kind("tech-discovery"), ""), "many");
        assert!(chosen(&catalog, &of_kind("tech-discovery-x"), "").starts_with("AddonNotSelected"));
    }

    #[test]
    fn an_addon_that_states_no_kind_must_be_named() {
        let catalog = catalog([addon("any", "", "")], []);
        assert!(chosen(&catalog, &of_kind("analyzer"), "").starts_with("AddonNotSelected"));
        assert_eq!(chosen(&catalog, &of_addon("any"), ""), "any");
    }

    #[test]
    fn the_selector_looks_at_the_tags_of_the_subject() {
        let catalog = catalog(
            [
                addon("csharp", "analyzer", "tag:Language=C#"),
                addon("java", "analyzer", "tag:Language=Java && !tag:Legacy"),
            ],
            [],
        );
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), "Language=C#"), "csharp");
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), "Language=Java"), "java");
        assert_eq!(
            chosen(&catalog, &of_kind("analyzer"), "Language=Java,Legacy=yes"),
            "AddonNotSelected: no addon selected for task kind \"analyzer\": the tags of the subject do not match the \
             selectors of csharp, java"
        );
    }

    #[test]
    fn tags_that_change_change_the_choice() {
        let catalog =
            catalog([addon("any", "analyzer", ""), addon("and-java", "analyzer", "tag:Language=Java")], []);
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), ""), "any");
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), "Language=Java"), "and-java");
    }

    #[test]
    fn of_several_that_fit_the_first_by_name_is_taken() {
        let addons = || [addon("b", "analyzer", ""), addon("a", "analyzer", ""), addon("c", ".*", "")];
        let mut turned = addons();
        turned.reverse();
        assert_eq!(chosen(&catalog(addons(), []), &of_kind("analyzer"), ""), "a");
        assert_eq!(chosen(&catalog(turned, []), &of_kind("analyzer"), ""), "a");
    }

    #[test]
    fn no_addon_for_the_kind_is_told() {
        assert_eq!(
            chosen(&catalog([addon("a", "other", "")], []), &of_kind("analyzer"), ""),
            "AddonNotSelected: no addon serves task kind \"analyzer\"; create one or set spec.addon"
        );
    }

    #[test]
    fn a_long_list_of_candidates_is_shortened() {
        let addons = (0..20).map(|number| addon(&format!("a{number:02}"), "analyzer", "tag:Never"));
        assert!(chosen(&catalog(addons, []), &of_kind("analyzer"), "").ends_with("a06, a07 and 12 more"));
    }

    #[test]
    fn a_kind_that_does_not_exist_is_told_also_if_the_addon_is_named() {
        let catalog = catalog([addon("java", "analyzer", "")], []);
        for task in [of_kind("analyzer"), TaskSpec { addon: "java".to_owned(), ..of_kind("analyzer") }] {
            let error = catalog.select(&task, None, &[]).unwrap_err();
            assert_eq!(error.reason(), "KindNotFound");
            assert_eq!(
                error.to_string(),
                "task kind \"analyzer\" does not exist; create it, or submit the task again with another spec.kind"
            );
        }
    }

    #[test]
    fn a_task_that_names_nothing_is_told() {
        assert_eq!(
            chosen(&catalog([addon("a", ".*", "")], []), &TaskSpec::default(), ""),
            "AddonNotSelected: the task names no kind, addon or container; there is nothing to run"
        );
    }

    #[test]
    fn an_addon_that_goes_or_changes_is_no_longer_what_it_was() {
        let mut catalog = catalog([addon("a", "analyzer", "")], []);
        catalog.put_addon(addon("a", "other", ""));
        assert!(chosen(&catalog, &of_kind("analyzer"), "").starts_with("AddonNotSelected"));
        assert_eq!(chosen(&catalog, &of_kind("other"), ""), "a");
        catalog.remove_addon("a");
        assert!(chosen(&catalog, &of_addon("a"), "").starts_with("AddonNotFound"));
        assert_eq!(catalog.addon("a"), None);
    }
}

mod broken_addons {
    use super::*;

    #[test]
    fn a_bad_pattern_harms_only_tasks_that_find_nothing_else() {
        let catalog = catalog([addon("bad", "analyzer(", ""), addon("good", "analyzer", "")], []);
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), ""), "good");
        assert_eq!(chosen(&catalog, &of_addon("good"), ""), "good");
        assert_eq!(
            chosen(&catalog, &of_kind("other"), ""),
            "AddonTaskNotValid: the task of addon \"bad\" is not valid: \"analyzer(\" is not a name or a regular \
             expression: unclosed group"
        );
    }

    #[test]
    fn a_bad_selector_harms_only_tasks_of_that_kind_that_find_nothing_else() {
        let catalog = catalog(
            [addon("bad", "analyzer", "tag:Language=Java &&"), addon("good", "analyzer", "tag:Language=Go")],
            [],
        );
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), "Language=Go"), "good");
        assert!(chosen(&catalog, &of_kind("other"), "").starts_with("AddonNotSelected"));
        assert_eq!(
            chosen(&catalog, &of_kind("analyzer"), "Language=Java"),
            "SelectorNotValid: the selector of addon \"bad\" is not valid: at column 21: found the end, expected a term \
             such as tag:Language=Java, '!' or '('"
        );
    }

    #[test]
    fn an_unknown_predicate_is_a_bad_selector() {
        let catalog = catalog([addon("a", "analyzer", "platform:kind=cf")], []);
        assert!(chosen(&catalog, &of_kind("analyzer"), "").starts_with("SelectorNotValid"));
    }

    #[test]
    fn an_addon_that_is_not_ready_is_passed_over_while_another_will_do() {
        let mut waiting = addon("a", "analyzer", "");
        waiting.status.conditions = vec![ready(ConditionStatus::False, "image is being pulled")];
        let alone = catalog([waiting.clone()], []);
        let refusal = "NotReady: addon \"a\" is not ready: image is being pulled";
        assert_eq!(chosen(&alone, &of_kind("analyzer"), ""), refusal);
        assert_eq!(chosen(&alone, &of_addon("a"), ""), refusal);
        let both = catalog([waiting, addon("b", "analyzer", "")], []);
        assert_eq!(chosen(&both, &of_kind("analyzer"), ""), "b");
    }

    #[test]
    fn only_a_condition_of_this_generation_counts() {
        let mut changed = addon("a", "analyzer", "");
        changed.metadata.generation = 2;
        let seen_at =
            |generation| Condition { observed_generation: generation, ..ready(ConditionStatus::Unknown, "") };
        for (generation, expected) in
            [(Some(1), "a"), (Some(2), "NotReady: addon \"a\" is not ready: Checked")]
        {
            changed.status.conditions = vec![seen_at(generation)];
            assert_eq!(chosen(&catalog([changed.clone()], []), &of_kind("analyzer"), ""), expected);
        }
        changed.status.conditions = vec![ready(ConditionStatus::True, "")];
        assert_eq!(chosen(&catalog([changed.clone()], []), &of_kind("analyzer"), ""), "a");
        changed.status.conditions = vec![Condition { reason: String::new(), ..seen_at(None) }];
        assert_eq!(
            chosen(&catalog([changed], []), &of_kind("analyzer"), ""),
            "NotReady: addon \"a\" is not ready: its condition Ready is Unknown"
        );
    }

    #[test]
    fn of_several_reasons_the_one_that_came_closest_is_told() {
        let mut waiting = addon("c", "analyzer", "");
        waiting.status.conditions = vec![ready(ConditionStatus::False, "")];
        let bad_pattern = addon("a", "(", "");
        let bad_selector = addon("b", "analyzer", "(");
        let declines = addon("d", "analyzer", "tag:Never");
        let all = catalog([bad_pattern.clone(), bad_selector.clone(), waiting, declines.clone()], []);
        assert!(chosen(&all, &of_kind("analyzer"), "").starts_with("NotReady: addon \"c\""));
        let fewer = catalog([bad_pattern.clone(), bad_selector, declines.clone()], []);
        assert!(
            chosen(&fewer, &of_kind("analyzer"), "")
                .starts_with("SelectorNotValid: the selector of addon \"b\"")
        );
        let two = catalog([bad_pattern, declines], []);
        assert!(
            chosen(&two, &of_kind("analyzer"), "").starts_with("AddonTaskNotValid: the task of addon \"a\"")
        );
    }

    #[test]
    fn the_catalog_tells_what_in_it_cannot_be_judged() {
        let catalog = catalog(
            [addon("b", "(", "("), addon("a", "ok", "tag:A")],
            [extension("x", ")", ""), extension("y", "", "nonsense")],
        );
        let told: Vec<_> = catalog.problems().map(|problem| problem.reason()).collect();
        assert_eq!(told, ["AddonTaskNotValid", "SelectorNotValid", "ExtAddonNotValid", "SelectorNotValid"]);
    }
}

mod extensions {
    use super::*;

    fn analyzers() -> [Addon; 2] {
        [addon("analyzer", "analyzer", ""), addon("other", "other", "")]
    }

    #[test]
    fn all_that_match_addon_and_tags_are_taken_by_name() {
        let catalog = catalog(
            analyzers(),
            [
                extension("java", "analyzer", "tag:Language=Java"),
                extension("go", "analyzer", "tag:Language=Go"),
                extension("builtin", "an.*", ""),
                extension("elsewhere", "other", ""),
                extension("by-name-only", "", ""),
            ],
        );
        assert_eq!(chosen(&catalog, &of_kind("analyzer"), "Language=Java"), "analyzer + builtin + java");
        assert_eq!(
            chosen(&catalog, &of_addon("analyzer"), "Language=Go,Language=Java"),
            "analyzer + builtin + go + java"
        );
        assert_eq!(chosen(&catalog, &of_addon("other"), ""), "other + elsewhere");
    }

    #[test]
    fn a_list_switches_the_choice_by_rule_off() {
        let catalog = catalog(
            analyzers(),
            [extension("a", "analyzer", ""), extension("b", "analyzer", "tag:Never"), extension("c", "", "")],
        );
        assert_eq!(
            chosen(&catalog, &with_extensions(of_kind("analyzer"), &["c", "b"]), ""),
            "analyzer + c + b"
        );
        assert_eq!(chosen(&catalog, &with_extensions(of_kind("analyzer"), &[]), ""), "analyzer");
        assert_eq!(chosen(&catalog, &with_extensions(of_kind("analyzer"), &["c", "c"]), ""), "analyzer + c");
    }

    #[test]
    fn one_that_is_named_must_exist() {
        let catalog = catalog(analyzers(), []);
        assert_eq!(
            chosen(&catalog, &with_extensions(of_addon("analyzer"), &["java"]), ""),
            "ExtensionNotFound: extension \"java\" does not exist; create it, or submit the task again with other spec.extensions"
        );
    }

    #[test]
    fn one_that_is_named_must_extend_the_addon() {
        let catalog = catalog(analyzers(), [extension("java", "oth.*", "")]);
        assert_eq!(chosen(&catalog, &with_extensions(of_addon("other"), &["java"]), ""), "other + java");
        assert_eq!(
            chosen(&catalog, &with_extensions(of_addon("analyzer"), &["java"]), ""),
            "ExtensionNotValid: extension \"java\" extends \"oth.*\" and not addon \"analyzer\""
        );
    }

    #[test]
    fn a_bad_pattern_harms_only_tasks_that_name_it() {
        let catalog = catalog(analyzers(), [extension("bad", "ana(", ""), extension("good", "analyzer", "")]);
        assert_eq!(chosen(&catalog, &of_addon("analyzer"), ""), "analyzer + good");
        assert_eq!(
            chosen(&catalog, &with_extensions(of_addon("analyzer"), &["bad"]), ""),
            "ExtAddonNotValid: the addon of extension \"bad\" is not valid: \"ana(\" is not a name or a regular \
             expression: unclosed group"
        );
    }

    #[test]
    fn a_bad_selector_harms_only_tasks_of_its_addon() {
        let catalog = catalog(analyzers(), [extension("bad", "analyzer", "tag:")]);
        assert_eq!(chosen(&catalog, &of_addon("other"), ""), "other");
        assert_eq!(
            chosen(&catalog, &of_addon("analyzer"), ""),
            "SelectorNotValid: the selector of extension \"bad\" is not valid: at column 5: found the end, expected a \
             category such as Language"
        );
        assert_eq!(chosen(&catalog, &with_extensions(of_addon("analyzer"), &["bad"]), ""), "analyzer + bad");
    }

    #[test]
    fn one_that_is_not_ready_fails_the_task_it_is_for() {
        let mut waiting = extension("java", "analyzer", "tag:Language=Java");
        waiting.status.conditions = vec![ready(ConditionStatus::False, "no image")];
        let catalog = catalog(analyzers(), [waiting]);
        let refusal = "NotReady: extension \"java\" is not ready: no image";
        assert_eq!(chosen(&catalog, &of_addon("analyzer"), "Language=Java"), refusal);
        assert_eq!(chosen(&catalog, &with_extensions(of_addon("analyzer"), &["java"]), ""), refusal);
        assert_eq!(chosen(&catalog, &of_addon("analyzer"), "Language=Go"), "analyzer");
    }

    #[test]
    fn one_that_goes_is_no_longer_chosen() {
        let mut catalog = catalog(analyzers(), [extension("java", "analyzer", "")]);
        catalog.remove_extension("java");
        assert_eq!(chosen(&catalog, &of_addon("analyzer"), ""), "analyzer");
        assert_eq!(catalog.extension("java"), None);
    }
}

mod inline {
    use super::*;

    fn inline() -> [TaskSpec; 2] {
        [
            TaskSpec { container: Some(Container::default()), ..TaskSpec::default() },
            TaskSpec { containers: vec![Container::default()], ..of_kind("analyzer") },
        ]
    }

    #[test]
    fn a_task_with_containers_of_its_own_gets_no_addon() {
        let catalog =
            catalog([addon("a", "analyzer", "")], [extension("x", "a", ""), extension("y", ".*", "")]);
        for task in inline() {
            assert_eq!(chosen(&catalog, &task, ""), "-");
        }
    }

    #[test]
    fn it_may_name_extensions_that_belong_to_no_addon() {
        let catalog = catalog([], [extension("free", "", ""), extension("bound", ".*", "")]);
        for task in inline() {
            assert_eq!(chosen(&catalog, &with_extensions(task.clone(), &["free"]), ""), "- + free");
            assert_eq!(
                chosen(&catalog, &with_extensions(task, &["bound"]), ""),
                "ExtensionNotValid: extension \"bound\" extends \".*\" and not a task with containers of its own"
            );
        }
    }
}

fn any_rule() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "tag:A",
        "tag:A=1",
        "!tag:A",
        "tag:A || tag:B",
        "(",
        "tag:B && !tag:A=1",
        "x:y",
    ])
    .prop_map(str::to_owned)
}

fn any_pattern() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "k", "l", "a", "b", ".*", "k|l", "a|b", "(", "[a-z]"])
        .prop_map(str::to_owned)
}

fn any_addons() -> impl Strategy<Value = Vec<Addon>> {
    let one =
        ("[a-e]", any_pattern(), any_rule(), any::<bool>()).prop_map(|(name, task, selector, is_ready)| {
            let mut addon = addon(&name, &task, &selector);
            if !is_ready {
                addon.status.conditions = vec![ready(ConditionStatus::False, "")];
            }
            addon
        });
    prop::collection::vec(one, 0..6).prop_map(|mut addons| {
        addons.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        addons.dedup_by(|one, other| one.metadata.name == other.metadata.name);
        addons
    })
}

fn any_extensions() -> impl Strategy<Value = Vec<Extension>> {
    let one = ("[a-e]", any_pattern(), any_rule())
        .prop_map(|(name, of, selector)| extension(&name, &of, &selector));
    prop::collection::vec(one, 0..6).prop_map(|mut extensions| {
        extensions.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        extensions.dedup_by(|one, other| one.metadata.name == other.metadata.name);
        extensions
    })
}

proptest! {
    #[test]
    fn the_choice_does_not_depend_on_the_order_of_objects(
        (addons, shuffled) in any_addons().prop_flat_map(|addons| (Just(addons.clone()), Just(addons).prop_shuffle())),
        (extensions, turned) in any_extensions()
            .prop_flat_map(|extensions| (Just(extensions.clone()), Just(extensions).prop_shuffle())),
        kind in "[klm]",
        on in prop::sample::select(vec!["", "A=1", "A=2", "B=1", "B=1,A=1"]),
    ) {
        let (one, other) = (catalog(addons, extensions), catalog(shuffled, turned));
        prop_assert_eq!(select(&one, &of_kind(&kind), on), select(&other, &of_kind(&kind), on));
    }

    #[test]
    fn an_addon_the_task_does_not_need_changes_nothing(
        addons in any_addons(),
        task in any_pattern(),
        rule in any_rule(),
        kind in "[klm]",
        on in prop::sample::select(vec!["", "A=1", "B=1,A=1"]),
    ) {
        let without = catalog(addons.clone(), []);
        // Last by name, so it can only be chosen where nothing else is.
        let with = catalog(addons.into_iter().chain([addon("z", &task, &rule)]), []);
        if let Ok(selection) = select(&without, &of_kind(&kind), on) {
            prop_assert_eq!(select(&with, &of_kind(&kind), on), Ok(selection));
        }
    }

    #[test]
    fn any_text_in_a_rule_is_judged(task in ".{0,20}", rule in ".{0,40}", of in ".{0,20}", kind in ".{0,9}") {
        let catalog = catalog([addon("a", &task, &rule)], [extension("x", &of, &rule)]);
        let _ignored = chosen(&catalog, &of_kind(&kind), "A=1");
        let _ignored = chosen(&catalog, &with_extensions(of_addon("a"), &["x"]), "");
    }
}
