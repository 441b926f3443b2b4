//! A wire that can be cut and mended: to the API server of a cluster, or to anything else on this machine.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::cluster::Cluster;

/// A wire between a server and its cluster.
pub struct Wire {
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    kubeconfig: PathBuf,
    port: u16,
}

impl Wire {
    /// A wire to the API server of a cluster.
    pub fn to(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let here = listener.local_addr().expect("a listener has an address");
        let mut there = String::new();
        let kubeconfig = cluster.kubeconfig_with(|config| {
            let target = &mut config["clusters"][0]["cluster"];
            there = target["server"].as_str().expect("a cluster has a server").replace("https://", "");
            let host = there.rsplit_once(':').map_or(there.as_str(), |(host, _)| host).to_owned();
            target["server"] = format!("https://{here}").into();
            target["tls-server-name"] = host.into();
        });
        let far = there.to_socket_addrs().ok().and_then(|mut all| all.next());
        let far = far.expect("the server of the cluster has an address and a port");
        Self::between(listener, far, kubeconfig)
    }

    /// A wire to a port of this machine.
    pub fn to_port(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        Self::between(listener, SocketAddr::from(([127, 0, 0, 1], port)), PathBuf::new())
    }

    fn between(listener: TcpListener, far: SocketAddr, kubeconfig: PathBuf) -> Self {
        let port = listener.local_addr().expect("a listener has an address").port();
        let wire = Self { is_cut: Arc::default(), open: Arc::default(), kubeconfig, port };
        let (is_cut, open) = (wire.is_cut.clone(), wire.open.clone());
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if !is_cut.load(Ordering::SeqCst) {
                    // Whoever cannot be connected is simply not.
                    drop(connect(near, far, &open));
                }
            }
        });
        wire
    }

    /// The port of this end.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The kubeconfig of the cluster through this wire.
    pub fn kubeconfig(&self) -> &str {
        self.kubeconfig.to_str().expect("a path that is text")
    }

    /// Nothing passes any more.
    pub fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // It may be closed already.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Everything passes again.
    pub fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

/// Joins two ends until one of them closes.
pub fn connect(near: TcpStream, far: SocketAddr, open: &Mutex<Vec<TcpStream>>) -> io::Result<()> {
    let far = TcpStream::connect(far)?;
    let mut known = open.lock().unwrap_or_else(PoisonError::into_inner);
    known.extend([near.try_clone()?, far.try_clone()?]);
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        thread::spawn(move || pass_on(from, to));
    }
    Ok(())
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    drop(io::copy(&mut from, &mut to));
    drop(to.shutdown(Shutdown::Both));
}
