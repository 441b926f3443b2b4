//! Plain HTTP by hand: for requests that no decent client would send.

use std::io::{self, Read, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::lines::Lines;
use crate::wait::SOON;

/// A server and who speaks to it.
#[derive(Debug, Clone)]
pub struct Http {
    address: String,
    token: Option<String>,
}

/// A request that is being put together.
#[derive(Debug, Clone)]
pub struct Request {
    http: Http,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status code.
    pub code: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Http {
    /// A client of the server at an address.
    pub fn new(address: &str, token: Option<&str>) -> Self {
        Self { address: address.to_owned(), token: token.map(str::to_owned) }
    }

    /// The same server with another token, or with none.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..self.clone() }
    }

    /// Begins a request.
    pub fn request(&self, method: &str, path: &str) -> Request {
        let headers = self.token.iter().map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        Request {
            http: self.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: headers.collect(),
            body: Vec::new(),
        }
    }

    /// `GET`.
    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path).send()
    }

    /// `POST` of JSON.
    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path).json(body).send()
    }

    /// `PUT` of JSON.
    pub fn put(&self, path: &str, body: &str) -> Answer {
        self.request("PUT", path).json(body).send()
    }

    /// `PATCH` in one of the patch languages, for example `merge-patch+json`.
    pub fn patch(&self, path: &str, language: &str, body: &str) -> Answer {
        let media_type = format!("application/{language}");
        self.request("PATCH", path).header("Content-Type", &media_type).body(body).send()
    }

    /// `DELETE`.
    pub fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path).send()
    }
}

impl Request {
    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &str) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    /// Sends the request and reads the whole answer.
    #[track_caller]
    pub fn send(self) -> Answer {
        let what = format!("{} {}", self.method, self.path);
        let answer = self.try_send();
        assert!(answer.is_ok(), "{what}: {answer:?}");
        answer.expect("just checked")
    }

    /// The same for a server that may be gone, or go meanwhile.
    pub fn try_send(self) -> io::Result<Answer> {
        let mut stream = self.write()?;
        let mut answer = Vec::new();
        let mut chunk = vec![0; 64 * 1024];
        // A server that refuses early may close before it has read everything; what it said is there anyway. One that
        // does not close has said how much it says.
        let read = loop {
            match stream.read(&mut chunk) {
                Ok(count) if count > 0 => answer.extend_from_slice(&chunk[..count]),
                ended => break ended,
            }
            if length(&answer).is_some_and(|length| answer.len() >= length) {
                break Ok(0);
            }
        };
        let whole = length(&answer).map_or(!answer.is_empty(), |length| answer.len() >= length);
        if !whole {
            return Err(read.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(parse(&answer))
    }

    /// Sends the request and gives the lines of the answer's body as they come.
    #[track_caller]
    pub fn stream(self) -> Lines {
        let what = format!("{} {}", self.method, self.path);
        let (answer, lines) = self.try_stream().expect("the server takes connections and answers");
        assert_eq!(answer.code, 200, "{what}: {answer:?}");
        lines
    }

    /// The same for a server that may be gone: the head of its answer, and lines until it ends.
    pub fn try_stream(self) -> io::Result<(Answer, Lines)> {
        let mut stream = self.write()?;
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
            head.push(byte[0]);
        }
        if !head.ends_with(b"\r\n\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((parse(&head), Lines::of(Unchunked { stream, left: 0 })))
    }

    fn write(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.http.address)?;
        stream.set_read_timeout(Some(SOON))?;
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
            self.method, self.path, self.http.address
        );
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !self.body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        head.push_str("\r\n");
        // A refusal may come before all is sent; then the answer counts, not the rest of the request.
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&self.body));
        drop(sent);
        Ok(stream)
    }
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        assert!(parsed.is_ok(), "{} is not JSON: {:?}", self.code, self.text());
        parsed.unwrap_or_default()
    }
}

/// How long an answer is with its head, if that has come and says so.
fn length(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
    let said = head.split("\r\n").find_map(|line| line.strip_prefix("content-length:"))?;
    Some(end + 4 + said.trim().parse::<usize>().ok()?)
}

#[track_caller]
fn parse(answer: &[u8]) -> Answer {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("an answer has a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let code = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let rest = &answer[end + 4..];
    let chunked = headers.iter().any(|(name, value)| {
        name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked")
    });
    let mut body = rest.to_vec();
    if chunked {
        body.clear();
        let read = Unchunked { stream: rest, left: 0 }.read_to_end(&mut body);
        read.expect("a slice can be read");
    }
    Answer { code: code.expect("an answer has a code"), headers, body }
}

/// A body without the sizes between its chunks.
struct Unchunked<R> {
    stream: R,
    left: usize,
}

impl<R: Read> Unchunked<R> {
    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        let mut byte = [0];
        while self.stream.read(&mut byte)? == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&line).trim().to_owned())
    }
}

impl<R: Read> Read for Unchunked<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut size = self.line()?;
            if size.is_empty() {
                // The end of the chunk before.
                size = self.line()?;
            }
            self.left = usize::from_str_radix(&size, 16).unwrap_or(0);
        }
        let most = out.len().min(self.left);
        let read = self.stream.read(&mut out[..most])?;
        self.left -= read;
        Ok(read)
    }
}
