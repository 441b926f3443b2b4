//! One connection to the server: requests one after the other, or a watch. Every break is an error, never a panic.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use crate::wait::SOON;

/// An open connection.
pub struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Status code.
    pub code: u16,
    body: Vec<u8>,
}

impl Answer {
    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// True if the request was carried out.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// Where a body ends.
enum Length {
    Known(usize),
    Chunked,
}

impl Connection {
    /// Connects to the server at an address.
    pub fn open(address: &str, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SOON))?;
        let head = format!("HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { stream: BufReader::new(stream), head })
    }

    /// `GET`.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask("GET", path, "", "")
    }

    /// Sends a request and reads its answer.
    pub fn ask(&mut self, method: &str, path: &str, media: &str, body: &str) -> io::Result<Answer> {
        self.send(method, path, media, body)?;
        let (code, length) = self.read_head()?;
        let mut whole = Vec::new();
        match length {
            Length::Known(bytes) => {
                whole.resize(bytes, 0);
                self.stream.read_exact(&mut whole)?;
            }
            Length::Chunked => while self.read_chunk(&mut whole)? {},
        }
        Ok(Answer { code, body: whole })
    }

    /// Begins a watch; the code and what was said instead if it is refused.
    pub fn watch(mut self, path: &str) -> io::Result<Result<Stream, Answer>> {
        self.send("GET", path, "", "")?;
        match self.read_head()? {
            (200, Length::Chunked) => Ok(Ok(Stream { connection: self, unread: Vec::new() })),
            (code, Length::Known(bytes)) => {
                let mut body = vec![0; bytes];
                self.stream.read_exact(&mut body)?;
                Ok(Err(Answer { code, body }))
            }
            (code, Length::Chunked) => Ok(Err(Answer { code, body: Vec::new() })),
        }
    }

    fn send(&mut self, method: &str, path: &str, media: &str, body: &str) -> io::Result<()> {
        let kind = if media.is_empty() { String::new() } else { format!("Content-Type: {media}\r\n") };
        let request =
            format!("{method} {path} {}{kind}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        self.stream.get_mut().write_all(request.as_bytes())
    }

    fn read_head(&mut self) -> io::Result<(u16, Length)> {
        let status = self.read_line()?;
        let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let code = code.ok_or_else(|| broken("the answer has no status"))?;
        let mut length = Length::Known(0);
        loop {
            let line = self.read_line()?.to_ascii_lowercase();
            match line.split_once(':') {
                None => return Ok((code, length)),
                Some(("content-length", bytes)) => {
                    let bytes = bytes.trim().parse().map_err(|_| broken("the answer has no length"))?;
                    length = Length::Known(bytes);
                }
                Some(("transfer-encoding", coding)) if coding.trim() == "chunked" => length = Length::Chunked,
                Some(_) => {}
            }
        }
    }

    /// Reads a chunk; false if it was the last.
    fn read_chunk(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let size =
            usize::from_str_radix(&self.read_line()?, 16).map_err(|_| broken("a chunk has no size"))?;
        let start = out.len();
        out.resize(start + size, 0);
        self.stream.read_exact(&mut out[start..])?;
        self.read_line()?;
        Ok(size > 0)
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

/// A watch that goes on.
pub struct Stream {
    connection: Connection,
    unread: Vec<u8>,
}

impl Stream {
    /// The next whole line; `None` if the server ended the watch in order.
    pub fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            if !self.connection.read_chunk(&mut self.unread)? {
                return if self.unread.is_empty() {
                    Ok(None)
                } else {
                    Err(broken("a watch ended within a line"))
                };
            }
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
