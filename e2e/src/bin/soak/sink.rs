//! A web hook of the soak: every message that reaches it is written down before it is confirmed.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use muster_sim::judge::history::{Delivery, What};
use serde_json::Value;

use crate::recorder::Recorder;

/// The sink that is made for it, with its namespace.
pub const PATH: &str = "default/soak";

/// Takes messages from now on; the port.
pub fn start(recorder: &Recorder) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let recorder = recorder.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let recorder = recorder.clone();
            // Whoever is cut off sends again.
            std::thread::spawn(move || drop(serve(stream, &recorder)));
        }
    });
    Ok(port)
}

fn serve(stream: TcpStream, recorder: &Recorder) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut length, mut id) = (0, String::new());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            let Some((name, value)) = line.split_once(':') else { continue };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(io::Error::other)?,
                "webhook-id" => value.trim().clone_into(&mut id),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body: Value = serde_json::from_slice(&body)?;
        let about = body["job-id"].as_str().unwrap_or_default().to_owned();
        // The id is `UID/WORD` or `UID/WORD/NUMBER`, the routing key `cds.job.WORD`.
        let word = id.split('/').nth(1).unwrap_or_default();
        let topic = format!("cds.job.{word}");
        recorder.note(What::Delivered(Delivery { sink: PATH.to_owned(), id, about, topic }));
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}
