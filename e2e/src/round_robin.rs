//! What stands before several servers and passes each connection to the next of them.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::thread;

use crate::outage::connect;

/// A door to several servers.
pub struct RoundRobin {
    address: SocketAddr,
}

impl RoundRobin {
    /// A door to servers at these addresses, each in its turn.
    pub fn before(addresses: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let far: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().expect("an address")).collect();
        thread::spawn(move || {
            for (near, far) in listener.incoming().map_while(Result::ok).zip(far.iter().cycle()) {
                // Whoever cannot be connected is simply not.
                drop(connect(near, *far, &Mutex::default()));
            }
        });
        Self { address }
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }
}
