//! A server that answers what it is told to, once per request, and remembers what it was asked.

use std::io::{BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::world::SOON;

/// A request as it came.
pub struct Asked {
    /// Method and path, as in the first line.
    pub what: String,
    /// The header `authorization`.
    pub token: String,
    /// The body.
    pub body: Vec<u8>,
}

/// A server with prepared answers.
pub struct FakeServer {
    address: SocketAddr,
    asked: Receiver<Asked>,
}

impl FakeServer {
    /// Answers each request with the next of these: a status line and a body.
    pub fn with(answers: &[(&'static str, &'static str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let address = listener.local_addr().expect("a listener has an address");
        let answers = answers.to_vec();
        let (sender, asked) = channel();
        thread::spawn(move || {
            for (status, body) in answers {
                let (stream, _) = listener.accept().expect("somebody connects");
                let mut reader = BufReader::new(stream.try_clone().expect("a stream can be shared"));
                drop(sender.send(read_request(&mut reader)));
                let mut stream = stream;
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
                let answer = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Self { address, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The next request.
    #[track_caller]
    pub fn asked(&self) -> Asked {
        self.asked.recv_timeout(SOON).expect("something is asked soon")
    }
}

fn read_request(reader: &mut impl std::io::BufRead) -> Asked {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a request has a head");
        if line.trim_end().is_empty() {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let header = |name: &str| {
        head.iter().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let mut body = Vec::new();
    if let Some(length) = header("content-length") {
        let length = length.parse().expect("a length is a number");
        reader.take(length).read_to_end(&mut body).expect("a body is as long as it says");
    } else if header("transfer-encoding").is_some() {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).expect("a part has a size");
            let size = u64::from_str_radix(size.trim(), 16).expect("a size is a number");
            reader.take(size).read_to_end(&mut body).expect("a part is as long as it says");
            reader.read_line(&mut String::new()).expect("a part has an end");
            if size == 0 {
                break;
            }
        }
    }
    let first = head.first().cloned().unwrap_or_default();
    let what = first.trim_end_matches(" HTTP/1.1").to_owned();
    Asked { what, token: header("authorization").unwrap_or_default(), body }
}
