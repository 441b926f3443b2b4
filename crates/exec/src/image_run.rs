//! How docker and podman are told to run containers and to remove them. Decides by values alone.
//!
//! The program of a container is then the client (`podman run`): what it writes is what the container writes, its end is the end of the
//! container, and a signal to it is handed on. If the client is killed, the container is not; so whatever happened, containers are
//! removed by name before the end of an attempt is told.
//!
//! Files are where they are for a process: the work directory and the cache have the same paths inside and outside. So has the network,
//! or the server could not be reached by the same address.

use std::path::Path;

use muster_types::attempt::{Handle, LaunchContainer, Limits};
use muster_types::image_launch::{ImageContainer, ImageDriver};

/// What clients need of the environment of whoever starts them. Values of the same name that are meant for the container are given to it
/// on the command line, where other users can see them; none of these is a secret.
const OF_CLIENT: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "REGISTRY_AUTH_FILE",
];
/// All containers of a work root have this label.
const LABEL: &str = "muster.dev/work-root";

/// Where containers run and within which limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImagePlace<'a> {
    pub(crate) driver: ImageDriver,
    pub(crate) root: &'a Path,
    pub(crate) work: &'a Path,
    /// If there is one.
    pub(crate) cache: Option<&'a Path>,
    /// Of each container.
    pub(crate) limits: Limits,
    /// As whom, in the words of the image.
    pub(crate) user: Option<&'a str>,
    /// The environment of whoever starts clients.
    pub(crate) own_env: &'a [(String, String)],
}

/// What a container is called.
pub(crate) fn container_name(handle: &Handle, container: &str) -> String {
    format!("muster-{handle}-{container}")
}

/// What of an environment clients need.
pub(crate) fn of_client(env: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    env.filter(|(name, _)| OF_CLIENT.contains(&name.as_str())).collect()
}

/// The client that runs a container, as a program.
pub(crate) fn render_run(
    place: &ImagePlace<'_>,
    handle: &Handle,
    container: &LaunchContainer,
    image: &ImageContainer,
) -> LaunchContainer {
    let mut words = vec![place.driver.program().to_owned(), "run".into(), "--rm".into()];
    let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    option("name", container_name(handle, &container.name));
    option("label", label(place.root));
    option("log-driver", "none".into());
    option("network", "host".into());
    for directory in [Some(place.work), place.cache].into_iter().flatten() {
        let path = directory.display();
        option("mount", format!("type=bind,source={path},target={path}"));
    }
    option("workdir", place.work.display().to_string());
    if let Some(millis) = place.limits.cpu_millis {
        option("cpus", format!("{}.{:03}", millis / 1000, millis % 1000));
    }
    if let Some(bytes) = place.limits.memory {
        option("memory", bytes.to_string());
    }
    if let Some(user) = place.user {
        option("user", user.to_owned());
    }
    let mut env = place.own_env.to_vec();
    for (name, value) in &container.env {
        if OF_CLIENT.contains(&name.as_str()) {
            option("env", format!("{name}={value}"));
        } else {
            // Its value is taken from the environment of the client, which others cannot see.
            option("env", name.clone());
            env.push((name.clone(), value.clone()));
        }
    }
    let mut command = container.command.iter();
    if let Some(entrypoint) = command.next() {
        option("entrypoint", entrypoint.clone());
    }
    words.push(image.image.clone());
    words.extend(command.cloned());
    words.extend(image.args.iter().cloned());
    LaunchContainer { name: container.name.clone(), command: words, env }
}

/// What removes containers at once, whether they run or not, and also if they are not there.
pub(crate) fn render_removal(driver: ImageDriver, names: &[String]) -> Vec<String> {
    let words: &[&str] = match driver {
        ImageDriver::Docker => &["docker", "rm", "--force", "--volumes"],
        // It would ask them first, though their time is over.
        ImageDriver::Podman => &["podman", "rm", "--force", "--time", "0", "--volumes"],
    };
    words.iter().map(ToString::to_string).chain(names.iter().cloned()).collect()
}

/// What lists the containers of a work root, by number.
pub(crate) fn render_list(driver: ImageDriver, root: &Path) -> Vec<String> {
    let words = [driver.program(), "ps", "--all", "--quiet", "--filter"].map(String::from);
    words.into_iter().chain([format!("label={}", label(root))]).collect()
}

fn label(root: &Path) -> String {
    format!("{LABEL}={}", root.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[&str], env: &[(&str, &str)], limits: Limits, user: Option<&str>) -> LaunchContainer {
        let own_env = [("PATH".to_owned(), "/bin".to_owned())];
        let place = ImagePlace {
            driver: ImageDriver::Podman,
            root: Path::new("/r"),
            work: Path::new("/r/t-1/work"),
            cache: Some(Path::new("/r/cache")),
            limits,
            user,
            own_env: &own_env,
        };
        let container = LaunchContainer {
            name: "addon".into(),
            command: command.iter().map(ToString::to_string).collect(),
            env: env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        };
        let image = ImageContainer { image: "busybox:1".into(), args: vec!["-x".into(), "y z".into()] };
        render_run(&place, &Handle { task: "t".into(), attempt: 1 }, &container, &image)
    }

    #[test]
    fn a_container_is_run_with_all_that_the_attempt_says() {
        let limits = Limits { cpu_millis: Some(1500), memory: Some(1 << 20) };
        let run = run(&["sh", "-c"], &[("MUSTER_TOKEN", "s3cret"), ("PATH", "/own")], limits, Some("app"));
        assert_eq!(
            run.command.join(" "),
            "podman run --rm --name muster-t-1-addon --label muster.dev/work-root=/r --log-driver none \
             --network host --mount type=bind,source=/r/t-1/work,target=/r/t-1/work \
             --mount type=bind,source=/r/cache,target=/r/cache --workdir /r/t-1/work --cpus 1.500 \
             --memory 1048576 --user app --env MUSTER_TOKEN --env PATH=/own --entrypoint sh busybox:1 -c -x y z"
        );
        let env = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(run.env, [env("PATH", "/bin"), env("MUSTER_TOKEN", "s3cret")]);
    }

    #[test]
    fn without_a_command_the_image_says_what_runs() {
        let run = run(&[], &[], Limits::default(), None);
        assert!(
            !run.command.iter().any(|word| ["--entrypoint", "--cpus", "--user"].contains(&word.as_str()))
        );
        assert_eq!(run.command[run.command.len() - 3..], ["busybox:1", "-x", "y z"]);
    }

    #[test]
    fn containers_are_found_by_their_work_root_and_removed_by_name() {
        let list = render_list(ImageDriver::Docker, Path::new("/r"));
        assert_eq!(list.join(" "), "docker ps --all --quiet --filter label=muster.dev/work-root=/r");
        let removal = render_removal(ImageDriver::Docker, &["a".to_owned(), "b".to_owned()]);
        assert_eq!(removal.join(" "), "docker rm --force --volumes a b");
        let removal = render_removal(ImageDriver::Podman, &["a".to_owned()]);
        assert_eq!(removal.join(" "), "podman rm --force --time 0 --volumes a");
    }
}
