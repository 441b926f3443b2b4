//! What an attempt runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]
#![allow(clippy::needless_pass_by_value, reason = "stories read better without & before every json!")]

use std::collections::BTreeSet;
use std::time::Duration;

use muster_tasks::render::{Contract, Order, RenderError, Token, render_attempt, render_data};
use muster_tasks::select::Selection;
use muster_types::attempt::{Launch, Limits};
use muster_types::image_launch::ImageDriver;
use muster_types::task::Runtime;
use muster_types::{Addon, Extension, Task, TaskKind, TaskSpec};
use proptest::prelude::*;
use serde_json::{Value, json};

fn task(spec: Value) -> Task {
    let mut task = Task::new("default", "analyze-7", serde_json::from_value(spec).unwrap());
    task.metadata.uid.push_str("uid-7");
    task
}

fn addon(container: Value) -> Addon {
    Addon::new("default", "java-analyzer", serde_json::from_value(json!({ "container": container })).unwrap())
}

fn extension(name: &str, container: Value) -> Extension {
    Extension::new("default", name, serde_json::from_value(json!({ "container": container })).unwrap())
}

/// Renders, with an array index or without.
fn render_at(
    index: Option<u64>,
    task: &Task,
    addon: Option<&Addon>,
    extensions: &[Extension],
) -> Result<Launch, RenderError> {
    render_of(None, index, task, addon, extensions)
}

/// The same, of a kind or without one.
fn render_of(
    kind: Option<&TaskKind>,
    index: Option<u64>,
    task: &Task,
    addon: Option<&Addon>,
    extensions: &[Extension],
) -> Result<Launch, RenderError> {
    let token = Token::new("secret");
    render_attempt(&Order {
        runtime: task.spec.runtime.unwrap_or(Runtime::Process),
        attempt: 2,
        task,
        kind,
        selection: &Selection { addon, extensions: extensions.iter().collect() },
        contract: Contract {
            url: "https://127.0.0.1:7400",
            token: &token,
            addon_home: "/work/addon",
            shared_path: "/work/shared",
            cache_path: "/cache",
        },
        base_env: &[("PATH".to_owned(), "/bin".to_owned()), ("HOME".to_owned(), "/home".to_owned())],
        index,
        kill_timeout: Duration::from_secs(10),
    })
}

fn render(task: &Task, addon: Option<&Addon>, extensions: &[Extension]) -> Result<Launch, RenderError> {
    render_at(None, task, addon, extensions)
}

/// Each container as `name: command`, with its variables below it.
fn shown(launch: &Launch) -> String {
    let lines = launch.containers.iter().flat_map(|it| {
        let env = it.env.iter().map(|(name, value)| format!("  {name}={value}"));
        [format!("{}: {}", it.name, it.command.join(" "))].into_iter().chain(env)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn commands(launch: &Launch) -> Vec<String> {
    launch.containers.iter().map(|it| format!("{}: {}", it.name, it.command.join(" "))).collect()
}

fn variable<'a>(launch: &'a Launch, container: usize, name: &str) -> Option<&'a str> {
    let mut found = launch.containers[container].env.iter().filter(|(its, _)| its == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert_eq!(found.next(), None, "{name} is set twice");
    value
}

#[test]
fn an_addon_with_an_extension_is_rendered_whole() {
    let addon = addon(json!({
        "command": ["analyze", "--port=${seq:8000}"], "args": ["--all"], "env": [{"name": "LEVEL", "value": "3"}],
    }));
    let java = extension(
        "java-17",
        json!({
            "command": ["provider"], "args": ["--port", "${seq:8000}"], "env": [{"name": "Port.Number", "value": "${seq:8000}"}],
        }),
    );
    let launch = render(&task(json!({"addon": "java-analyzer"})), Some(&addon), &[java]).unwrap();
    assert_eq!(launch.handle.to_string(), "uid-7-2");
    insta::assert_snapshot!(shown(&launch), @r"
    addon: analyze --port=8000 --all
      ADDON_HOME=/work/addon
      CACHE_PATH=/cache
      HOME=/home
      HUB_BASE_URL=https://127.0.0.1:7400
      LEVEL=3
      MUSTER_NAMESPACE=default
      MUSTER_TASK=analyze-7
      MUSTER_TOKEN=secret
      MUSTER_URL=https://127.0.0.1:7400
      PATH=/bin
      SHARED_PATH=/work/shared
      TASK=analyze-7
      TOKEN=secret
      _EXT_JAVA_17_PORT_NUMBER=8002
    java-17: provider --port 8001
      ADDON_HOME=/work/addon
      CACHE_PATH=/cache
      HOME=/home
      HUB_BASE_URL=https://127.0.0.1:7400
      MUSTER_NAMESPACE=default
      MUSTER_TASK=analyze-7
      MUSTER_TOKEN=secret
      MUSTER_URL=https://127.0.0.1:7400
      PATH=/bin
      Port.Number=8002
      SHARED_PATH=/work/shared
      TASK=analyze-7
      TOKEN=secret
    ");
}

mod containers {
    use super::*;

    #[test]
    fn the_only_container_of_a_task_is_called_addon_or_what_it_says() {
        let launch = render(&task(json!({"container": {"command": ["true"]}})), None, &[]).unwrap();
        assert_eq!(commands(&launch), ["addon: true"]);
        let named = task(json!({"container": {"name": "main", "command": ["true"]}}));
        assert_eq!(commands(&render(&named, None, &[]).unwrap()), ["main: true"]);
    }

    #[test]
    fn the_leading_container_comes_first_and_the_others_keep_their_order() {
        let containers = |leading: &str| {
            let one = |name: &str| json!({"name": name, "command": [name], "leading": name == leading});
            task(json!({"containers": [one("a"), one("b"), one("c")]}))
        };
        let names = |leading| commands(&render(&containers(leading), None, &[]).unwrap()).join(", ");
        assert_eq!(names("none"), "a: a, b: b, c: c");
        assert_eq!(names("a"), "a: a, b: b, c: c");
        assert_eq!(names("b"), "b: b, a: a, c: c");
        assert_eq!(names("c"), "c: c, a: a, b: b");
    }

    #[test]
    fn an_addon_may_name_its_container_and_an_extension_may_not() {
        let addon = addon(json!({"name": "main", "command": ["true"]}));
        let extension = extension("java", json!({"name": "other", "command": ["side"]}));
        let launch = render(&task(json!({})), Some(&addon), &[extension]).unwrap();
        assert_eq!(commands(&launch), ["main: true", "java: side"]);
    }

    #[test]
    fn an_extension_runs_beside_containers_of_the_task_too() {
        let extension = extension("proxy", json!({"command": ["p"], "env": [{"name": "A", "value": "b"}]}));
        let own = task(json!({"containers": [
            {"name": "x", "command": ["x"]}, {"name": "y", "command": ["y"], "leading": true},
        ]}));
        let launch = render(&own, None, &[extension]).unwrap();
        assert_eq!(commands(&launch), ["y: y", "x: x", "proxy: p"]);
        assert_eq!(variable(&launch, 0, "_EXT_PROXY_A"), Some("b"));
        assert_eq!(variable(&launch, 1, "_EXT_PROXY_A"), None);
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let addon = addon(json!({"command": ["main"]}));
        let launch =
            render(&task(json!({})), Some(&addon), &[extension("addon", json!({"command": ["side"]}))]);
        assert_eq!(commands(&launch.unwrap()), ["addon: main", "addon-2: side"]);
        let unnamed =
            task(json!({"containers": [{"command": ["a"]}, {"command": ["b"]}, {"command": ["c"]}]}));
        assert_eq!(commands(&render(&unnamed, None, &[]).unwrap()), ["addon: a", "addon-2: b", "addon-3: c"]);
    }

    #[test]
    fn a_name_that_would_leave_its_directory_is_refused() {
        let bad = task(json!({"container": {"name": "../../etc/passwd", "command": ["true"]}}));
        let error = render(&bad, None, &[]).unwrap_err();
        assert_eq!(error.reason(), "NameNotValid");
        assert!(
            error
                .to_string()
                .starts_with("container \"../../etc/passwd\" has a name that cannot be used: a lower")
        );
    }

    #[test]
    fn without_a_command_there_is_no_attempt() {
        for (container, words) in [
            (json!({}), "container \"addon\" has no command; set one"),
            (json!({"args": ["x"]}), "container \"addon\" has no command; set one"),
            (json!({"command": [""]}), "container \"addon\" has no command; set one"),
            (
                json!({"image": "quay.io/x"}),
                "container \"addon\" has no command; a process does not run its image \"quay.io/x\", so set a command, or driver: podman",
            ),
        ] {
            let error = render(&task(json!({})), Some(&addon(container)), &[]).unwrap_err();
            assert_eq!((error.reason(), error.to_string().as_str()), ("NoCommand", words));
        }
        let good = addon(json!({"command": ["true"]}));
        let error =
            render(&task(json!({})), Some(&good), &[extension("java", json!({"image": "i"}))]).unwrap_err();
        assert!(error.to_string().starts_with("container \"java\" has no command"));
    }

    #[test]
    fn without_a_container_there_is_no_attempt() {
        let error = render(&task(json!({})), None, &[extension("a", json!({"command": ["a"]}))]).unwrap_err();
        assert_eq!((error.reason(), error), ("NoCommand", RenderError::NoContainer));
    }

    #[test]
    fn what_no_program_can_be_given_is_refused() {
        for container in [json!({"command": ["a\u{0}"]}), json!({"command": ["a"], "args": ["\u{0}"]})] {
            let error = render(&task(json!({})), Some(&addon(container)), &[]).unwrap_err();
            assert_eq!(error.reason(), "CommandNotValid");
        }
        for (name, value, why) in [
            ("", "", "its name is empty"),
            ("A=B", "", "its name contains '=' or a NUL character"),
            ("A", "\u{0}", "its value contains a NUL character"),
        ] {
            let container = json!({"command": ["a"], "env": [{"name": name, "value": value}]});
            let error = render(&task(json!({})), Some(&addon(container)), &[]).unwrap_err();
            assert_eq!(error.reason(), "EnvNotValid");
            assert_eq!(
                error.to_string(),
                format!("variable {name:?} of container \"addon\" cannot be set: {why}")
            );
        }
    }
}

mod environment {
    use super::*;

    fn with_env(env: Value) -> Task {
        task(json!({"container": {"command": ["true"], "env": env}}))
    }

    #[test]
    fn own_variables_win_over_what_the_runtime_offers() {
        let launch = render(&with_env(json!([{"name": "PATH", "value": "/mine"}])), None, &[]).unwrap();
        assert_eq!(variable(&launch, 0, "PATH"), Some("/mine"));
        assert_eq!(variable(&launch, 0, "HOME"), Some("/home"));
    }

    #[test]
    fn the_contract_cannot_be_overridden() {
        let contract = [
            ("MUSTER_URL", "https://127.0.0.1:7400"),
            ("MUSTER_TOKEN", "secret"),
            ("MUSTER_TASK", "analyze-7"),
            ("MUSTER_NAMESPACE", "default"),
            ("ADDON_HOME", "/work/addon"),
            ("SHARED_PATH", "/work/shared"),
            ("CACHE_PATH", "/cache"),
            ("HUB_BASE_URL", "https://127.0.0.1:7400"),
            ("TOKEN", "secret"),
            ("TASK", "analyze-7"),
        ];
        let forged: Vec<_> =
            contract.iter().map(|(name, _)| json!({"name": name, "value": "forged"})).collect();
        let launch = render(&with_env(json!(forged)), None, &[]).unwrap();
        for (name, value) in contract {
            assert_eq!(variable(&launch, 0, name), Some(value));
        }
    }

    #[test]
    fn the_place_in_an_array_is_passed_on() {
        let own = with_env(json!([{"name": "MUSTER_INDEX", "value": "mine"}]));
        assert_eq!(variable(&render_at(Some(41), &own, None, &[]).unwrap(), 0, "MUSTER_INDEX"), Some("41"));
        assert_eq!(variable(&render(&own, None, &[]).unwrap(), 0, "MUSTER_INDEX"), Some("mine"));
        assert_eq!(variable(&render(&with_env(json!([])), None, &[]).unwrap(), 0, "MUSTER_INDEX"), None);
    }

    #[test]
    fn of_two_variables_with_one_name_the_later_counts() {
        let twice = with_env(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]));
        assert_eq!(variable(&render(&twice, None, &[]).unwrap(), 0, "A"), Some("2"));
    }

    #[test]
    fn variables_of_extensions_reach_the_addon_and_nobody_else() {
        let one = |name: &str, value: &str| {
            extension(
                name,
                json!({"command": ["x"], "env": [{"name": "ädr", "value": value}, {"name": "B"}]}),
            )
        };
        let addon = addon(json!({"command": ["a"], "env": [{"name": "_EXT_JAVA_B", "value": "mine"}]}));
        let launch = render(&task(json!({})), Some(&addon), &[one("java", "1"), one("go", "2")]).unwrap();
        assert_eq!(variable(&launch, 0, "_EXT_JAVA__DR"), Some("1"));
        assert_eq!(variable(&launch, 0, "_EXT_GO__DR"), Some("2"));
        assert_eq!(variable(&launch, 0, "_EXT_JAVA_B"), Some(""));
        assert!(
            launch.containers[1..].iter().flat_map(|it| &it.env).all(|(name, _)| !name.starts_with("_EXT_"))
        );
    }

    #[test]
    fn the_token_is_not_shown_by_accident() {
        let token = Token::new("secret");
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert_eq!(token.reveal(), "secret");
    }
}

mod data_of_the_task {
    use muster_types::attempt::{MAX_DATA, MAX_DATA_VARIABLE, TaskData};

    use super::*;

    fn with_data(data: Value) -> Task {
        let own = json!([{"name": "MUSTER_TASK_DATA", "value": "mine"}]);
        task(
            json!({"data": data, "containers": [{"command": ["a"], "env": own}, {"name": "b", "command": ["b"]}]}),
        )
    }

    /// Data that is this long as JSON.
    fn long(bytes: usize) -> Value {
        Value::String("x".repeat(bytes - 2))
    }

    #[test]
    fn the_data_of_a_kind_reaches_every_program_under_that_of_the_task() {
        let spec = json!({"data": {"rules": ["a"], "mode": {"fast": true, "depth": 1}}});
        let kind = TaskKind::new("default", "analyzer", serde_json::from_value(spec).unwrap());
        let launch = render_of(Some(&kind), None, &with_data(json!({"mode": {"depth": 9}})), None, &[]);
        let launch = launch.unwrap();
        let merged = json!({"rules": ["a"], "mode": {"fast": true, "depth": 9}});
        let read = |text: Option<&str>| serde_json::from_str::<Value>(text.unwrap()).unwrap();
        assert_eq!(read(launch.data.as_ref().map(TaskData::as_str)), merged);
        for container in 0..2 {
            assert_eq!(read(variable(&launch, container, "MUSTER_TASK_DATA")), merged);
        }
    }

    #[test]
    fn a_task_without_data_gets_none() {
        let launch = render(&task(json!({"container": {"command": ["a"]}})), None, &[]).unwrap();
        assert_eq!((launch.data.as_ref(), variable(&launch, 0, "MUSTER_TASK_DATA")), (None, None));
    }

    #[test]
    fn data_that_is_too_long_for_a_variable_is_a_file_alone() {
        let launch = |bytes: usize| render(&with_data(long(bytes)), None, &[]).unwrap();
        assert!(variable(&launch(MAX_DATA_VARIABLE), 1, "MUSTER_TASK_DATA").is_some());
        let launch = launch(MAX_DATA_VARIABLE + 1);
        assert_eq!(variable(&launch, 1, "MUSTER_TASK_DATA"), None);
        assert_eq!(launch.data.unwrap().as_str().len(), MAX_DATA_VARIABLE + 1);
    }

    #[test]
    fn more_data_than_fits_is_refused_with_its_length() {
        assert!(render(&with_data(long(MAX_DATA)), None, &[]).is_ok());
        let error = render(&with_data(long(MAX_DATA + 1)), None, &[]).unwrap_err();
        assert_eq!(error.reason(), "DataTooLarge");
        assert!(error.to_string().contains("131073 bytes"), "{error}");
    }
}

mod macros {
    use super::*;

    #[test]
    fn the_program_itself_is_not_expanded() {
        let task = task(json!({"container": {"command": ["${seq:1}", "${seq:1}"], "args": ["${seq:1}"]}}));
        assert_eq!(commands(&render(&task, None, &[]).unwrap()), ["addon: ${seq:1} 1 2"]);
    }

    #[test]
    fn one_counter_spans_all_containers_of_an_attempt() {
        let one = |name: &str| json!({"name": name, "command": ["x", "${seq:9000}", "${seq:1}"]});
        let task = task(json!({"containers": [one("a"), one("b")]}));
        let expected = ["a: x 9000 1", "b: x 9001 2"];
        assert_eq!(commands(&render(&task, None, &[]).unwrap()), expected);
        // And starts anew for the next.
        assert_eq!(commands(&render(&task, None, &[]).unwrap()), expected);
    }

    #[test]
    fn the_addon_sees_the_number_its_extension_got() {
        let addon = addon(json!({"command": ["a"]}));
        let java =
            extension("java", json!({"command": ["j"], "env": [{"name": "PORT", "value": "${seq:8000}"}]}));
        let launch = render(&task(json!({})), Some(&addon), &[java]).unwrap();
        assert_eq!(variable(&launch, 0, "_EXT_JAVA_PORT"), Some("8000"));
        assert_eq!(variable(&launch, 1, "PORT"), Some("8000"));
    }
}

mod limits {
    use super::*;

    fn limits(spec: Value) -> Limits {
        render(&task(spec), None, &[]).unwrap().limits
    }

    #[test]
    fn times_come_from_the_task_or_the_settings() {
        let launch = |spec| render(&task(spec), None, &[]).unwrap();
        let plain = launch(json!({"container": {"command": ["a"]}}));
        assert_eq!((plain.timeout, plain.kill_timeout), (None, Duration::from_secs(10)));
        let own = launch(json!({"container": {"command": ["a"]}, "timeout": "2m", "killTimeout": "1s"}));
        assert_eq!((own.timeout, own.kill_timeout), (Some(Duration::from_mins(2)), Duration::from_secs(1)));
        let zero = launch(json!({"container": {"command": ["a"]}, "timeout": 0, "killTimeout": 0}));
        assert_eq!((zero.timeout, zero.kill_timeout), (None, Duration::ZERO));
    }

    #[test]
    fn the_task_speaks_for_all_its_containers() {
        let spec = json!({
            "resources": {"cpu": "500m"}, "container": {"command": ["a"], "resources": {"cpu": "4", "memory": "1Ki"}},
        });
        assert_eq!(limits(spec), Limits { cpu_millis: Some(500), memory: Some(1024) });
    }

    #[test]
    fn without_it_containers_are_summed_up_if_each_has_a_limit() {
        let containers = |first: Value, second: Value| {
            json!({"containers": [
                {"name": "a", "command": ["a"], "resources": first}, {"name": "b", "command": ["b"], "resources": second},
            ]})
        };
        let both = containers(json!({"cpu": "1", "memory": "8Ei"}), json!({"cpu": "250m"}));
        assert!(serde_json::from_value::<TaskSpec>(both).is_err());
        let both = containers(json!({"cpu": "1", "memory": "7Ei"}), json!({"cpu": "250m", "memory": "7Ei"}));
        assert_eq!(limits(both), Limits { cpu_millis: Some(1250), memory: Some(14 << 60) });
        let one = containers(json!({"cpu": "1"}), json!({}));
        assert_eq!(limits(one), Limits::default());
    }
}

mod data {
    use super::*;

    fn merged(own: Value, default: Value) -> Option<Value> {
        let task: TaskSpec = serde_json::from_value(json!({ "data": own })).unwrap();
        let kind = TaskKind::new("default", "k", serde_json::from_value(json!({ "data": default })).unwrap());
        render_data(&task, Some(&kind))
    }

    #[test]
    fn the_task_wins_and_maps_are_merged_at_every_depth() {
        let own = json!({"a": {"b": 1, "list": [1]}, "new": null});
        let default = json!({"a": {"b": 2, "c": 3, "list": [2, 3]}, "d": {"e": 4}, "new": 5});
        let expected = json!({"a": {"b": 1, "c": 3, "list": [1]}, "d": {"e": 4}, "new": null});
        assert_eq!(merged(own, default), Some(expected));
    }

    #[test]
    fn data_that_is_no_map_is_kept() {
        // The seed threw it away in favour of the kind's.
        for own in [json!([1, 2]), json!("text"), json!(7), json!(false)] {
            assert_eq!(merged(own.clone(), json!({"a": 1})), Some(own));
        }
        assert_eq!(merged(json!({"a": 1}), json!([1])), Some(json!({"a": 1})));
    }

    #[test]
    fn one_side_alone_is_taken_whole() {
        assert_eq!(merged(json!(null), json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(merged(json!(null), json!(null)), None);
        assert_eq!(render_data(&task(json!({"data": [1]})).spec, None), Some(json!([1])));
    }
}

fn any_container() -> impl Strategy<Value = Value> {
    let text = || prop_oneof!["[a-z]{0,3}", "(\\$\\{seq:[12]\\}|x){0,3}", ".{0,6}"];
    let env = prop::collection::vec(("[A-C]{0,2}|TOKEN|_EXT_A_B", text()), 0..4);
    (("[ab]?"), prop::collection::vec(text(), 0..3), prop::collection::vec(text(), 0..3), env, any::<bool>())
        .prop_map(|(name, command, args, env, leading)| {
            let env: Vec<_> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
            json!({"name": name, "command": command, "args": args, "env": env, "leading": leading})
        })
}

proptest! {
    #[test]
    fn any_attempt_is_whole_or_refused(
        containers in prop::collection::vec(any_container(), 0..4),
        addon_container in any_container(),
        sidecars in prop::collection::vec(("[ab]", any_container()), 0..3),
    ) {
        let addon = addon(addon_container);
        let extensions: Vec<_> = sidecars.into_iter().map(|(name, container)| extension(&name, container)).collect();
        let task = task(json!({ "containers": containers }));
        let selected = task.spec.containers.is_empty().then_some(&addon);
        if let Ok(launch) = render(&task, selected, &extensions) {
            let names: BTreeSet<_> = launch.containers.iter().map(|it| &it.name).collect();
            prop_assert_eq!(names.len(), launch.containers.len());
            prop_assert_eq!(launch.containers.len(), task.spec.containers.len().max(1) + extensions.len());
            for container in &launch.containers {
                prop_assert!(container.command.first().is_some_and(|program| !program.is_empty()));
                let variables: BTreeSet<_> = container.env.iter().map(|(name, _)| name).collect();
                prop_assert_eq!(variables.len(), container.env.len());
                prop_assert!(container.env.contains(&("TOKEN".to_owned(), "secret".to_owned())));
            }
        }
    }

    #[test]
    fn no_number_is_given_to_two_containers(counts in prop::collection::vec(1_usize..5, 1..5)) {
        let containers: Vec<_> = counts
            .iter()
            .enumerate()
            .map(|(index, count)| json!({"name": format!("c{index}"), "command": ["x"], "args": vec!["${seq:8000}"; *count]}))
            .collect();
        let launch = render(&task(json!({ "containers": containers })), None, &[]).unwrap();
        let numbers: Vec<&String> = launch.containers.iter().flat_map(|it| &it.command[1..]).collect();
        let expected: Vec<String> = (8000..).take(counts.iter().sum()).map(|number: u32| number.to_string()).collect();
        prop_assert_eq!(numbers, expected.iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_pod_needs_an_image_and_no_command() {
    let launch = render(
        &task(json!({
            "runtime": "pod", "resources": {"memory": "1Ki"}, "pod": {"nodeSelector": {"a": "b"}},
            "container": {"image": "i", "args": ["${seq:80}"]},
        })),
        None,
        &[],
    )
    .unwrap();
    assert!(launch.containers[0].command.is_empty());
    let pod = launch.pod.unwrap();
    assert_eq!(
        (pod.containers[0].image.as_str(), &pod.containers[0].args[..]),
        ("i", &["80".to_owned()][..])
    );
    assert_eq!(pod.containers[0].limits.memory, Some(1024));
    assert_eq!(pod.overrides, [json!({"nodeSelector": {"a": "b"}})]);
    let error =
        render(&task(json!({"runtime": "pod", "container": {"command": ["x"]}})), None, &[]).unwrap_err();
    assert_eq!(error.reason(), "NoImage");
}

#[test]
fn a_driver_runs_the_image_and_needs_no_command() {
    for runtime in ["process", "robot"] {
        let spec = json!({
            "runtime": runtime, "driver": "podman", "container": {"image": "i", "args": ["${seq:80}"]},
        });
        let launch = render(&task(spec), None, &[]).unwrap();
        assert!(launch.containers[0].command.is_empty());
        let image = launch.image.unwrap();
        assert_eq!(image.driver, ImageDriver::Podman);
        assert_eq!(
            (image.containers[0].image.as_str(), &image.containers[0].args[..]),
            ("i", &["80".to_owned()][..])
        );
    }
    let none =
        render(&task(json!({"driver": "docker", "container": {"command": ["x"]}})), None, &[]).unwrap_err();
    assert_eq!(none.reason(), "NoImage");
    assert!(none.to_string().contains("driver docker cannot run without one"), "{none}");
}

#[test]
fn an_image_is_no_concern_of_a_plain_process_nor_a_driver_of_a_pod() {
    let plain = json!({"driver": "exec", "container": {"image": "i", "command": ["x"]}});
    assert!(render(&task(plain), None, &[]).unwrap().image.is_none());
    let pod = json!({"runtime": "pod", "driver": "podman", "container": {"image": "i"}});
    let launch = render(&task(pod), None, &[]).unwrap();
    assert!(launch.image.is_none() && launch.pod.is_some());
}

#[test]
fn a_process_knows_nothing_of_pods() {
    let launch = render(&task(json!({"container": {"command": ["x"], "args": ["y"]}})), None, &[]).unwrap();
    assert_eq!(
        (launch.pod, &launch.containers[0].command[..]),
        (None, &["x".to_owned(), "y".to_owned()][..])
    );
}
