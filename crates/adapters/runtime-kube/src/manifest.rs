//! The pod of an attempt and the Secret with its token (seed 000, H54–H57, H64–H66). Pure.
//!
//! Container 0 is the leading one; all others are sidecars in the sense of Kubernetes: they start before it and are ended
//! after it. The Secret belongs to the pod, so it goes when the pod goes.

use std::time::Duration;

use muster_ports::runtime::{
    DATA_FILE_VARIABLE, Handle, Launch, LaunchContainer, Limits, PodContainer, PodLaunch,
};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::pod::Pod;
use crate::settings::PodSettings;

/// Says which server a pod belongs to.
pub(crate) const SERVER_LABEL: &str = "muster.dev/server";
/// Says which task a pod belongs to, by uid.
pub(crate) const TASK_LABEL: &str = "muster.dev/task";
/// Says which attempt it is.
pub(crate) const ATTEMPT_LABEL: &str = "muster.dev/attempt";
/// Says which task a pod belongs to, by name.
const TASK_NAME: &str = "muster.dev/task-name";
/// Holds the authority that the pod trusts, which it finds as a file.
const AUTHORITY: &str = "muster.dev/authority";
/// Where that file is.
const AUTHORITY_DIR: &str = "/var/run/muster";
const AUTHORITY_FILE: &str = "ca.pem";
/// Says where it is.
const AUTHORITY_VARIABLE: &str = "MUSTER_CA_FILE";
/// Holds the data of the task, which the pod finds as a file.
const DATA: &str = "muster.dev/data";
/// Where that file is.
const DATA_DIR: &str = "/var/run/muster-data";
const DATA_FILE: &str = "data.json";
/// Variables that are secrets.
const SECRET_VARIABLES: [&str; 2] = ["MUSTER_TOKEN", "TOKEN"];
/// The key of the token in its Secret.
const SECRET_KEY: &str = "TOKEN";
/// What a pod may be given besides its containers.
pub const POD_FIELDS: [&str; 18] = [
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostAliases",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "preemptionPolicy",
    "priorityClassName",
    "runtimeClassName",
    "schedulerName",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

/// Why there can be no pod.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ManifestError {
    #[error("spec.pod has {0:?}, which cannot be set there; it may have {list}", list = POD_FIELDS.join(", "))]
    Unknown(String),
    #[error("spec.pod is not an object")]
    NoObject,
}

/// The namespace of the pod of a launch.
pub(crate) fn namespace_of(launch: &PodLaunch, settings: &PodSettings) -> String {
    settings.namespace.clone().unwrap_or_else(|| launch.namespace.clone())
}

/// The pod of an attempt. What a task may say about it is not looked at further; the cluster does that.
pub(crate) fn render_pod(
    launch: &Launch,
    pod: &PodLaunch,
    settings: &PodSettings,
) -> Result<Value, ManifestError> {
    let name = launch.handle.pod_name();
    let containers: Vec<Value> = launch
        .containers
        .iter()
        .zip(&pod.containers)
        .map(|(container, more)| render_container(launch, container, more, settings))
        .collect();
    let (leading, sidecars) = containers.split_at(1.min(containers.len()));
    let sidecars: Vec<Value> = sidecars
        .iter()
        .cloned()
        .map(|mut sidecar| {
            sidecar["restartPolicy"] = json!("Always");
            sidecar
        })
        .collect();
    let mut volumes = vec![
        json!({ "name": "addon", "emptyDir": {} }),
        json!({ "name": "shared", "emptyDir": {} }),
        cache_volume(settings),
    ];
    let mut annotations = json!({ TASK_NAME: format!("{}/{}", pod.namespace, pod.task) });
    if let Some(authority) = &settings.authority {
        annotations[AUTHORITY] = json!(authority);
        volumes.push(annotation_volume("authority", AUTHORITY, AUTHORITY_FILE));
    }
    if let Some(data) = &launch.data {
        annotations[DATA] = json!(data.as_str());
        volumes.push(annotation_volume("data", DATA, DATA_FILE));
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": leading,
        "initContainers": sidecars,
        "volumes": volumes,
        "terminationGracePeriodSeconds": whole_seconds(launch.kill_timeout),
        "enableServiceLinks": false,
    });
    if let Some(timeout) = launch.timeout {
        spec["activeDeadlineSeconds"] = json!(whole_seconds(timeout).max(1));
    }
    if let Some(account) = &settings.service_account {
        spec["serviceAccountName"] = json!(account);
    } else {
        // Nobody said that the pod may talk to the cluster.
        spec["automountServiceAccountToken"] = json!(false);
    }
    if let Some(user) = settings.run_as_user {
        spec["securityContext"] = json!({ "runAsUser": user });
    }
    for overrides in &pod.overrides {
        let Value::Object(overrides) = overrides else { return Err(ManifestError::NoObject) };
        if let Some(key) = overrides.keys().find(|key| !POD_FIELDS.contains(&key.as_str())) {
            return Err(ManifestError::Unknown(key.clone()));
        }
        merge(&mut spec, overrides);
    }
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace_of(pod, settings),
            "labels": labels(&launch.handle, settings),
            "annotations": annotations,
        },
        "spec": spec,
    }))
}

/// The Secret with the token of an attempt, which belongs to its pod; `None` if it has no token.
pub(crate) fn render_secret(launch: &Launch, pod: &Pod, settings: &PodSettings) -> Option<Value> {
    let env = launch.containers.first()?.env.iter();
    let token = env.clone().find(|(name, _)| SECRET_VARIABLES.contains(&name.as_str()))?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": pod.metadata.name,
            "namespace": pod.metadata.namespace,
            "labels": labels(&launch.handle, settings),
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid.as_deref()?,
            }],
        },
        "immutable": true,
        "stringData": { SECRET_KEY: token.1 },
    }))
}

fn render_container(
    launch: &Launch,
    container: &LaunchContainer,
    more: &PodContainer,
    settings: &PodSettings,
) -> Value {
    let pod = launch.handle.pod_name();
    let own = container.env.iter().filter(|(name, _)| launch.data.is_none() || name != DATA_FILE_VARIABLE);
    let mut env: Vec<Value> = own.map(|(name, value)| render_variable(&pod, name, value)).collect();
    let mut mounts = vec![
        json!({ "name": "addon", "mountPath": "/addon" }),
        json!({ "name": "shared", "mountPath": "/shared" }),
        json!({ "name": "cache", "mountPath": "/cache" }),
    ];
    if settings.authority.is_some() {
        mounts.push(json!({ "name": "authority", "mountPath": AUTHORITY_DIR, "readOnly": true }));
        let is_said = container.env.iter().any(|(name, _)| name == AUTHORITY_VARIABLE);
        let file =
            json!({ "name": AUTHORITY_VARIABLE, "value": format!("{AUTHORITY_DIR}/{AUTHORITY_FILE}") });
        env.extend((!is_said).then_some(file));
    }
    if launch.data.is_some() {
        mounts.push(json!({ "name": "data", "mountPath": DATA_DIR, "readOnly": true }));
        env.push(json!({ "name": DATA_FILE_VARIABLE, "value": format!("{DATA_DIR}/{DATA_FILE}") }));
    }
    let mut rendered =
        json!({ "name": container.name, "image": more.image, "env": env, "volumeMounts": mounts });
    if !container.command.is_empty() {
        rendered["command"] = json!(container.command.iter().map(|text| escape(text)).collect::<Vec<_>>());
    }
    if !more.args.is_empty() {
        rendered["args"] = json!(more.args.iter().map(|text| escape(text)).collect::<Vec<_>>());
    }
    if let Some(limits) = render_limits(more.limits) {
        rendered["resources"] = json!({ "requests": limits, "limits": limits });
    }
    if let Some(policy) = &settings.image_pull_policy {
        rendered["imagePullPolicy"] = json!(policy);
    }
    rendered
}

fn render_variable(pod: &str, name: &str, value: &str) -> Value {
    if SECRET_VARIABLES.contains(&name) {
        return json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": pod, "key": SECRET_KEY } } });
    }
    json!({ "name": name, "value": escape(value) })
}

/// Kubernetes replaces `$(NAME)` by itself; what a task says is meant as it is written, on every runtime.
fn escape(text: &str) -> String {
    text.replace("$(", "$$(")
}

fn render_limits(limits: Limits) -> Option<Value> {
    let mut amounts = Map::new();
    if let Some(cpu) = limits.cpu_millis {
        amounts.insert("cpu".into(), json!(format!("{cpu}m")));
    }
    if let Some(memory) = limits.memory {
        amounts.insert("memory".into(), json!(memory.to_string()));
    }
    (!amounts.is_empty()).then_some(Value::Object(amounts))
}

fn cache_volume(settings: &PodSettings) -> Value {
    match &settings.cache_claim {
        Some(claim) => json!({ "name": "cache", "persistentVolumeClaim": { "claimName": claim } }),
        None => json!({ "name": "cache", "emptyDir": {} }),
    }
}

/// An annotation of the pod as a file of a volume: nothing else has to be there first.
fn annotation_volume(volume: &str, annotation: &str, file: &str) -> Value {
    let field = format!("metadata.annotations['{annotation}']");
    let item = json!({ "path": file, "fieldRef": { "fieldPath": field } });
    json!({ "name": volume, "downwardAPI": { "items": [item] } })
}

fn labels(handle: &Handle, settings: &PodSettings) -> Value {
    json!({
        "app.kubernetes.io/managed-by": "muster",
        SERVER_LABEL: settings.server,
        TASK_LABEL: handle.task,
        ATTEMPT_LABEL: handle.attempt.to_string(),
    })
}

fn merge(into: &mut Value, overrides: &Map<String, Value>) {
    for (key, value) in overrides {
        match (into.get_mut(key), value) {
            (Some(there @ Value::Object(_)), Value::Object(more)) => merge(there, more),
            (_, value) => into[key] = value.clone(),
        }
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use muster_ports::runtime::TaskData;

    use super::*;

    pub(crate) fn settings() -> PodSettings {
        PodSettings::new("s1", "/nowhere".into())
    }

    pub(crate) fn launch() -> Launch {
        let container = |name: &str| LaunchContainer {
            name: name.into(),
            command: vec!["run".into(), "$(date)".into()],
            env: vec![("A".into(), "$(B)".into()), ("MUSTER_TOKEN".into(), "muster_a_x".into())],
        };
        let more = |image: &str| PodContainer {
            image: image.into(),
            args: vec![],
            limits: Limits { cpu_millis: Some(500), memory: Some(1024) },
        };
        Launch {
            handle: Handle { task: "0197-u".into(), attempt: 2 },
            containers: vec![container("addon"), container("java")],
            timeout: Some(Duration::from_millis(1500)),
            kill_timeout: Duration::from_secs(10),
            limits: Limits::default(),
            pod: Some(Box::new(PodLaunch {
                namespace: "team".into(),
                task: "t1".into(),
                containers: vec![more("a:1"), more("j:1")],
                overrides: vec![],
                refusals: 0,
                knows_refusals: 0,
            })),
            robot: None,
            image: None,
            data: None,
            prefetch: 0,
            priority: 0,
        }
    }

    fn rendered(change: impl FnOnce(&mut Launch, &mut PodSettings)) -> Result<Value, ManifestError> {
        let (mut launch, mut settings) = (launch(), settings());
        change(&mut launch, &mut settings);
        let pod = launch.pod.clone().unwrap();
        render_pod(&launch, &pod, &settings)
    }

    #[test]
    fn a_pod_is_named_after_its_attempt_and_says_whose_it_is() {
        let pod = rendered(|_, _| {}).unwrap();
        assert_eq!(pod["metadata"]["name"], "task-0197-u-2");
        assert_eq!(pod["metadata"]["namespace"], "team");
        assert_eq!(pod["metadata"]["labels"][SERVER_LABEL], "s1");
        assert_eq!(pod["metadata"]["labels"][TASK_LABEL], "0197-u");
        assert_eq!(pod["metadata"]["annotations"][TASK_NAME], "team/t1");
        let pod = rendered(|_, settings| settings.namespace = Some("all".into())).unwrap();
        assert_eq!(pod["metadata"]["namespace"], "all");
    }

    #[test]
    fn the_leading_container_is_the_only_one_that_is_no_sidecar() {
        let pod = rendered(|_, _| {}).unwrap();
        assert_eq!(pod["spec"]["containers"].as_array().unwrap().len(), 1);
        assert_eq!(pod["spec"]["containers"][0]["name"], "addon");
        assert_eq!(pod["spec"]["initContainers"][0]["name"], "java");
        assert_eq!(pod["spec"]["initContainers"][0]["restartPolicy"], "Always");
        assert_eq!(pod["spec"]["restartPolicy"], "Never");
        assert_eq!(pod["spec"]["activeDeadlineSeconds"], 2);
        assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 10);
        assert_eq!(pod["spec"]["containers"][0]["resources"]["limits"]["cpu"], "500m");
    }

    #[test]
    fn no_secret_is_in_the_pod_and_nothing_is_replaced_by_the_cluster() {
        let pod = rendered(|_, _| {}).unwrap();
        assert!(!pod.to_string().contains("muster_a_x"));
        let container = &pod["spec"]["containers"][0];
        assert_eq!(container["command"], json!(["run", "$$(date)"]));
        assert_eq!(container["env"][0]["value"], "$$(B)");
        assert_eq!(container["env"][1]["valueFrom"]["secretKeyRef"]["name"], "task-0197-u-2");
    }

    #[test]
    fn a_pod_finds_the_authority_it_is_to_trust_as_a_file() {
        let pod = rendered(|_, settings| settings.authority = Some("PEM".into())).unwrap();
        assert_eq!(pod["metadata"]["annotations"][AUTHORITY], "PEM");
        let file = json!({ "name": "MUSTER_CA_FILE", "value": "/var/run/muster/ca.pem" });
        for container in [&pod["spec"]["containers"][0], &pod["spec"]["initContainers"][0]] {
            assert!(container["env"].as_array().unwrap().contains(&file), "{container:#}");
            assert_eq!(container["volumeMounts"][3]["mountPath"], "/var/run/muster");
        }
        let pod = rendered(|launch, settings| {
            settings.authority = Some("PEM".into());
            launch.containers[0].env.push(("MUSTER_CA_FILE".into(), "/own".into()));
        });
        let said = pod.unwrap()["spec"]["containers"][0]["env"].to_string();
        assert!(said.contains("/own") && !said.contains("ca.pem"), "{said}");
        assert!(!rendered(|_, _| {}).unwrap().to_string().contains("authority"));
    }

    #[test]
    fn a_pod_finds_the_data_of_its_task_as_a_file() {
        let pod = rendered(|launch, _| {
            launch.data = Some(TaskData::new(r#"{"a":"$(B)"}"#.into()));
            launch.containers[0].env.push((DATA_FILE_VARIABLE.into(), "/forged".into()));
        });
        let pod = pod.unwrap();
        assert_eq!(pod["metadata"]["annotations"][DATA], r#"{"a":"$(B)"}"#);
        let item = &pod["spec"]["volumes"][3]["downwardAPI"]["items"][0];
        assert_eq!(item["fieldRef"]["fieldPath"], "metadata.annotations['muster.dev/data']");
        let file = json!({ "name": "MUSTER_TASK_DATA_FILE", "value": "/var/run/muster-data/data.json" });
        for container in [&pod["spec"]["containers"][0], &pod["spec"]["initContainers"][0]] {
            assert!(container["env"].as_array().unwrap().contains(&file), "{container:#}");
            assert!(!container.to_string().contains("forged"));
            assert_eq!(container["volumeMounts"][3]["mountPath"], "/var/run/muster-data");
        }
        assert_eq!(item["path"], "data.json");
        assert!(!rendered(|_, _| {}).unwrap().to_string().contains("muster-data"));
    }

    #[test]
    fn the_secret_belongs_to_the_pod() {
        let launch = launch();
        let manifest = render_pod(&launch, launch.pod.as_ref().unwrap(), &settings()).unwrap();
        let mut pod: Pod = serde_json::from_value(manifest).unwrap();
        assert!(render_secret(&launch, &pod, &settings()).is_none(), "a pod that was not made has no uid");
        pod.metadata.uid = Some("u".into());
        let secret = render_secret(&launch, &pod, &settings()).unwrap();
        assert_eq!(secret["stringData"]["TOKEN"], "muster_a_x");
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], "u");
    }

    #[test]
    fn what_a_task_says_about_pods_is_merged_over_what_the_addon_says() {
        let pod = rendered(|launch, settings| {
            settings.run_as_user = Some(1000);
            let pod = launch.pod.as_mut().unwrap();
            pod.overrides
                .push(json!({"nodeSelector": {"zone": "a", "disk": "ssd"}, "tolerations": [{"key": "x"}]}));
            pod.overrides.push(json!({"nodeSelector": {"zone": "b"}, "securityContext": {"fsGroup": 5}}));
        })
        .unwrap();
        assert_eq!(pod["spec"]["nodeSelector"], json!({"zone": "b", "disk": "ssd"}));
        assert_eq!(pod["spec"]["securityContext"], json!({"runAsUser": 1000, "fsGroup": 5}));
        assert_eq!(pod["spec"]["tolerations"][0]["key"], "x");
    }

    #[test]
    fn what_is_not_a_tasks_to_say_is_refused() {
        let with = |value: Value| rendered(|launch, _| launch.pod.as_mut().unwrap().overrides.push(value));
        assert_eq!(with(json!({"containers": []})), Err(ManifestError::Unknown("containers".into())));
        assert_eq!(with(json!("text")), Err(ManifestError::NoObject));
    }
}
