"""What the Python `kubernetes` client does with a Muster server.

Called with the name of one scenario below; it ends with an exception if something is not as it should be. The
kubeconfig comes from KUBECONFIG, the namespace from MUSTER_TEST_NAMESPACE.
"""

import os
import sys

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

GROUP, VERSION, PLURAL = "muster.dev", "v1alpha1", "tasks"
NAMESPACE = os.environ.get("MUSTER_TEST_NAMESPACE", "")
WHERE = (GROUP, VERSION, NAMESPACE, PLURAL)


def task(name, labels=None, **spec):
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Task",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"kind": "analyzer", **spec},
    }


def objects():
    return client.CustomObjectsApi()


def names(listed):
    return [item["metadata"]["name"] for item in listed["items"]]


def refused(code, call, *arguments, **options):
    """The exception of a call that must be refused with a code."""
    try:
        call(*arguments, **options)
    except ApiException as exception:
        assert exception.status == code, exception
        return exception
    raise AssertionError(f"{call.__name__} was not refused")


# --- CustomObjectsApi


def creates_and_gets():
    made = objects().create_namespaced_custom_object(*WHERE, task("a", priority=3))
    assert made["metadata"]["uid"], made
    got = objects().get_namespaced_custom_object(*WHERE, "a")
    assert got["spec"] == {"kind": "analyzer", "priority": 3}, got


def is_refused_what_is_invalid():
    exception = refused(422, objects().create_namespaced_custom_object, *WHERE, task("a", priority=-1))
    assert "spec.priority" in exception.body, exception.body


def is_refused_what_exists():
    objects().create_namespaced_custom_object(*WHERE, task("a"))
    exception = refused(409, objects().create_namespaced_custom_object, *WHERE, task("a"))
    assert "AlreadyExists" in exception.body, exception.body


def lists_with_selectors():
    for name, color in [("a", "red"), ("b", "green"), ("c", "red")]:
        objects().create_namespaced_custom_object(*WHERE, task(name, {"color": color}))
    listed = objects().list_namespaced_custom_object
    assert names(listed(*WHERE, label_selector="color=red")) == ["a", "c"]
    assert names(listed(*WHERE, field_selector="metadata.name!=a")) == ["b", "c"]


def pages_through_a_list():
    for number in range(5):
        objects().create_namespaced_custom_object(*WHERE, task(f"t{number}"))
    seen, token, versions = [], None, set()
    while True:
        page = objects().list_namespaced_custom_object(*WHERE, limit=2, **({"_continue": token} if token else {}))
        seen += names(page)
        versions.add(page["metadata"]["resourceVersion"])
        # What comes meanwhile is not part of a list that has begun.
        objects().create_namespaced_custom_object(*WHERE, task(f"later-{len(seen)}"))
        token = page["metadata"].get("continue")
        if not token:
            break
    assert seen == [f"t{number}" for number in range(5)], seen
    assert len(versions) == 1, versions


def lists_over_all_namespaces():
    objects().create_namespaced_custom_object(*WHERE, task("a"))
    listed = objects().list_cluster_custom_object(GROUP, VERSION, PLURAL)
    assert NAMESPACE in [item["metadata"]["namespace"] for item in listed["items"]]


def patches():
    objects().create_namespaced_custom_object(*WHERE, task("a", priority=1, locator="here"))
    patched = objects().patch_namespaced_custom_object(*WHERE, "a", {"spec": {"priority": 2, "locator": None}})
    assert patched["spec"] == {"kind": "analyzer", "priority": 2}, patched
    operations = [{"op": "replace", "path": "/spec/priority", "value": 3}]
    patched = objects().patch_namespaced_custom_object(
        *WHERE, "a", operations, _content_type="application/json-patch+json"
    )
    assert patched["spec"]["priority"] == 3, patched


def replaces_unless_somebody_was_faster():
    stale = objects().create_namespaced_custom_object(*WHERE, task("a", priority=1))
    fresh = objects().patch_namespaced_custom_object(*WHERE, "a", {"spec": {"priority": 2}})
    exception = refused(409, objects().replace_namespaced_custom_object, *WHERE, "a", stale)
    assert "has been modified" in exception.body, exception.body
    fresh["spec"]["priority"] = 3
    assert objects().replace_namespaced_custom_object(*WHERE, "a", fresh)["spec"]["priority"] == 3


DONE = {"type": "Done", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def patches_the_status_without_a_new_generation():
    objects().create_namespaced_custom_object(*WHERE, task("a", priority=1))
    body = {"spec": {"priority": 9}, "status": {"conditions": [DONE]}}
    patched = objects().patch_namespaced_custom_object_status(*WHERE, "a", body)
    assert patched["status"]["conditions"] == [DONE], patched
    assert patched["status"]["state"] == "Ready", patched
    assert patched["spec"]["priority"] == 1, patched
    assert patched["metadata"]["generation"] == 1, patched


def deletes():
    objects().create_namespaced_custom_object(*WHERE, task("a"))
    objects().delete_namespaced_custom_object(*WHERE, "a")
    refused(404, objects().get_namespaced_custom_object, *WHERE, "a")


def deletes_collections():
    for name, color in [("a", "red"), ("b", "green")]:
        objects().create_namespaced_custom_object(*WHERE, task(name, {"color": color}))
    objects().delete_collection_namespaced_custom_object(*WHERE, label_selector="color=red")
    assert names(objects().list_namespaced_custom_object(*WHERE)) == ["b"]


def deletes_dependents_first_in_the_foreground():
    owner = objects().create_namespaced_custom_object(*WHERE, task("owner"))
    dependent = task("dependent")
    dependent["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": "Task",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": True,
        }
    ]
    start = objects().create_namespaced_custom_object(*WHERE, dependent)["metadata"]["resourceVersion"]
    options = client.V1DeleteOptions(propagation_policy="Foreground")
    objects().delete_namespaced_custom_object(*WHERE, "owner", body=options)
    gone = []
    for event in stream(start):
        if event["type"] == "DELETED":
            gone.append(event["object"]["metadata"]["name"])
        if len(gone) == 2:
            break
    assert gone == ["dependent", "owner"], gone


def stream(resource_version, **options):
    return watch.Watch().stream(
        objects().list_namespaced_custom_object,
        *WHERE,
        resource_version=resource_version,
        timeout_seconds=20,
        **options,
    )


def watches_and_resumes_where_it_was():
    start = objects().list_namespaced_custom_object(*WHERE)["metadata"]["resourceVersion"]
    for number in range(6):
        objects().create_namespaced_custom_object(*WHERE, task(f"t{number}"))
    seen = []
    for event in stream(start):
        seen.append(event["object"]["metadata"]["name"])
        start = event["object"]["metadata"]["resourceVersion"]
        if len(seen) == 3:
            break
    for event in stream(start):
        seen.append(event["object"]["metadata"]["name"])
        if len(seen) == 6:
            break
    assert seen == [f"t{number}" for number in range(6)], seen


def watches_one_label():
    start = objects().list_namespaced_custom_object(*WHERE)["metadata"]["resourceVersion"]
    for name, color in [("a", "red"), ("b", "green"), ("c", "red")]:
        objects().create_namespaced_custom_object(*WHERE, task(name, {"color": color}))
    seen = []
    for event in stream(start, label_selector="color=red"):
        seen.append(event["object"]["metadata"]["name"])
        if len(seen) == 2:
            break
    assert seen == ["a", "c"], seen


def is_told_that_a_revision_is_forgotten():
    """For a server that keeps few changes."""
    start = objects().create_namespaced_custom_object(*WHERE, task("a"))["metadata"]["resourceVersion"]
    for number in range(100):
        objects().patch_namespaced_custom_object(*WHERE, "a", {"spec": {"priority": number}})
    try:
        for _ in stream(start):
            raise AssertionError("a forgotten change was sent")
    except ApiException as exception:
        assert exception.status == 410, exception
    # What a client does then: list again and go on from there.
    listed = objects().list_namespaced_custom_object(*WHERE)
    objects().patch_namespaced_custom_object(*WHERE, "a", {"spec": {"priority": 1000}})
    for event in stream(listed["metadata"]["resourceVersion"]):
        assert event["object"]["spec"]["priority"] == 1000, event
        break


def is_refused_without_a_valid_token():
    configuration = client.Configuration.get_default_copy()
    configuration.api_key = {"BearerToken": "Bearer wrong"}
    configuration.refresh_api_key_hook = None
    api = client.CustomObjectsApi(client.ApiClient(configuration))
    refused(401, api.list_namespaced_custom_object, *WHERE)


def knows_the_version():
    assert "muster" in client.VersionApi().get_code().git_version


def asks_what_it_may_do():
    attributes = client.V1ResourceAttributes(verb="delete", group=GROUP, resource=PLURAL, namespace=NAMESPACE)
    review = client.V1SelfSubjectAccessReview(
        spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    assert client.AuthorizationV1Api().create_self_subject_access_review(review).status.allowed


# --- DynamicClient


def tasks():
    return dynamic.DynamicClient(client.ApiClient()).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Task")


def dynamic_finds_every_kind():
    found = dynamic.DynamicClient(client.ApiClient()).resources.search(group=GROUP)
    kinds = {resource.kind for resource in found if not resource.kind.endswith("List")}
    expected = (
        "Adapter Addon Application EventSink Extension Job KubeJob ResourceType Robot Schedule Task TaskGroup TaskKind "
        "TaskTemplate"
    )
    assert kinds == set(expected.split()), kinds


def dynamic_creates_gets_and_lists():
    made = tasks().create(body=task("a", {"color": "red"}, priority=3), namespace=NAMESPACE)
    assert made.metadata.generation == 1
    assert tasks().get(name="a", namespace=NAMESPACE).spec.priority == 3
    assert [item.metadata.name for item in tasks().get(namespace=NAMESPACE, label_selector="color=red").items] == ["a"]


def dynamic_patches_in_every_language():
    tasks().create(body=task("a", priority=1), namespace=NAMESPACE)
    for language, body in [
        ("application/merge-patch+json", {"spec": {"priority": 2}}),
        ("application/strategic-merge-patch+json", {"spec": {"priority": 2}}),
        ("application/json-patch+json", [{"op": "replace", "path": "/spec/priority", "value": 2}]),
    ]:
        patched = tasks().patch(name="a", namespace=NAMESPACE, body=body, content_type=language)
        assert patched.spec.priority == 2, language


def dynamic_applies_server_side():
    def applied(manager, priority, **options):
        return tasks().server_side_apply(
            body=task("a", priority=priority), namespace=NAMESPACE, field_manager=manager, **options
        )

    assert applied("alice", 1).spec.priority == 1
    try:
        applied("bob", 2)
        raise AssertionError("there was no conflict")
    except ConflictError as error:
        assert ".spec.priority" in str(error.body), error.body
    assert applied("bob", 2, force_conflicts=True).spec.priority == 2


def dynamic_replaces_unless_somebody_was_faster():
    stale = tasks().create(body=task("a", priority=1), namespace=NAMESPACE).to_dict()
    tasks().patch(
        name="a", namespace=NAMESPACE, body={"spec": {"priority": 2}}, content_type="application/merge-patch+json"
    )
    try:
        tasks().replace(body=stale, namespace=NAMESPACE)
        raise AssertionError("there was no conflict")
    except ConflictError:
        pass


def dynamic_writes_the_status():
    tasks().create(body=task("a"), namespace=NAMESPACE)
    patched = tasks().status.patch(
        name="a",
        namespace=NAMESPACE,
        body={"status": {"conditions": [DONE]}},
        content_type="application/merge-patch+json",
    )
    assert patched.status.conditions[0].type == "Done"


def dynamic_watches():
    start = tasks().get(namespace=NAMESPACE).metadata.resourceVersion
    tasks().create(body=task("a"), namespace=NAMESPACE)
    tasks().delete(name="a", namespace=NAMESPACE)
    seen = []
    for event in tasks().watch(namespace=NAMESPACE, resource_version=start, timeout=20):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            break
    assert seen == [("ADDED", "a"), ("DELETED", "a")], seen


def dynamic_deletes():
    tasks().create(body=task("a"), namespace=NAMESPACE)
    tasks().delete(name="a", namespace=NAMESPACE, body={"propagationPolicy": "Background"})
    try:
        tasks().get(name="a", namespace=NAMESPACE)
        raise AssertionError("it is still there")
    except NotFoundError:
        pass


if __name__ == "__main__":
    config.load_kube_config(config_file=os.environ["KUBECONFIG"])
    globals()[sys.argv[1]]()
