//! Robots that are deleted.

use muster_ports::runtime::Runtime as _;

use crate::yard::{TOKEN, Yard, launch};

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_robot_is_cut_off_and_hears_nothing_of_what_its_successor_is_told() {
    let yard = Yard::new().await;
    let (mut old, secret) = yard.join("r1").await;
    old.connected().await;
    old.beat(&secret, 4).await;
    yard.delete("r1").await;
    old.cut_off().await;
    // Somebody else works under that name from now on.
    let mut joining = yard.connect("r1", TOKEN, false);
    let credential = joining.register(TOKEN).await.credential.expect("a credential");
    let mut new = yard.connect("r1", &credential, true);
    new.connected().await;
    yard.runtime.start(launch("r1", 1));
    let told: serde_json::Value = new.hear().await;
    assert!(told.is_object(), "{told}");
    assert_eq!(old.messages(), 0);
}
