//! Leases: one holder, and a former one can do no harm.

use std::time::Duration;

use super::Subject;
use super::world::{World, all, create, run, task};
use crate::clock::Clock;
use crate::store::{Batch, CommitError, Lease, LeaseError, Store};

const TTL: Duration = Duration::from_secs(10);

async fn acquire<S: Subject>(world: &World<'_, S>, store: &Store, holder: &str) -> Result<Lease, LeaseError> {
    Lease::acquire(store, "engine", holder, TTL, world.clock.now()).await
}

/// Until it gives it up; the same holder may take it again, with the same fence.
pub fn a_lease_has_one_holder(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let (first, second) = tokio::join!(acquire(&world, &store, "one"), acquire(&world, &store, "two"));
        let lease = first.unwrap();
        assert!(matches!(second.unwrap_err(), LeaseError::Held { holder, .. } if holder == "one"));
        world.clock.advance(9_000);
        let lease = lease.renew(&store, TTL, world.clock.now()).await.unwrap();
        world.clock.advance(9_000);
        let error = acquire(&world, &store, "two").await.unwrap_err();
        assert_eq!(error.to_string(), "held by one until 19000");
        let again = acquire(&world, &store, "one").await.unwrap();
        assert_eq!((again.fence, again.expires.0), (lease.fence, 28_000));
        assert!(matches!(lease.renew(&store, TTL, world.clock.now()).await.unwrap_err(), LeaseError::Lost));
        let fence = again.fence;
        again.release(&store).await.unwrap();
        assert!(acquire(&world, &store, "two").await.unwrap().fence > fence);
    });
}

/// And the former holder learns it when it renews or releases.
pub fn an_expired_lease_is_taken_over_with_a_larger_fence(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let old = acquire(&world, &store, "one").await.unwrap();
        world.clock.advance(10_001);
        let new = acquire(&world, &store, "two").await.unwrap();
        assert!(new.fence > old.fence);
        assert!(matches!(old.renew(&store, TTL, world.clock.now()).await.unwrap_err(), LeaseError::Lost));
        assert!(matches!(old.release(&store).await.unwrap_err(), LeaseError::Lost));
        world.clock.advance(10_001);
        let late = new.renew(&store, TTL, world.clock.now()).await.unwrap();
        assert_eq!(late.fence, new.fence, "nobody took it meanwhile");
    });
}

/// However late it arrives.
pub fn a_batch_of_a_former_holder_is_refused(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let guarded = |lease: &Lease, name: &str| Batch {
            checks: vec![lease.guard()],
            ..all([create(&task(name), "1")])
        };
        let old = acquire(&world, &store, "one").await.unwrap();
        store.commit(guarded(&old, "in-time")).await.unwrap();
        world.clock.advance(10_001);
        let new = acquire(&world, &store, "two").await.unwrap();
        let error = store.commit(guarded(&old, "too-late")).await.unwrap_err();
        assert!(matches!(error, CommitError::Conflict { .. }));
        store.commit(guarded(&new, "of-the-new-one")).await.unwrap();
        assert!(store.get(&task("in-time")).is_some() && store.get(&task("of-the-new-one")).is_some());
        assert!(store.get(&task("too-late")).is_none());
    });
}

/// With its fence, so that a holder from before the restart stays fenced off.
pub fn a_lease_survives_a_restart(subject: &impl Subject) {
    let world = World::new(subject);
    run(async {
        let store = world.open();
        let old = acquire(&world, &store, "one").await.unwrap();
        drop(store);
        let store = world.open();
        assert!(matches!(acquire(&world, &store, "two").await.unwrap_err(), LeaseError::Held { .. }));
        let renewed = old.renew(&store, TTL, world.clock.now()).await.unwrap();
        assert_eq!(renewed.fence, old.fence);
        world.clock.advance(10_001);
        drop(store);
        assert!(acquire(&world, &world.open(), "two").await.unwrap().fence > old.fence);
    });
}
