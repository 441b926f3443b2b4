//! Jobs of a real Kubernetes: what the relay tells of them, and what the responder keeps of them.

#[cfg(test)]
mod real_broker_real_pods_responder;
#[cfg(test)]
mod real_pods_expiry;
#[cfg(test)]
mod real_pods_roles;
#[cfg(test)]
mod real_pods_states;
#[cfg(test)]
mod responder;
#[cfg(test)]
mod world;
