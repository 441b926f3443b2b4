//! A file from a web server. A transfer that breaks goes on where it broke, if the server can do that and still has the same file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::time::Duration;

use ureq::http::header::{ACCEPT_ENCODING, ETAG, IF_RANGE, LAST_MODIFIED, RANGE};
use ureq::http::{HeaderMap, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::Interrupt;
use super::failure::FetchFailure;
use super::source::{shown, shown_words};

/// How often a transfer is taken up without getting any further.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(250);
/// Time for a server to answer, and between two pieces.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fetches a URL into a file.
pub fn download(url: &str, target: &Path, interrupt: &Interrupt) -> Result<(), FetchFailure> {
    let disk = |error: io::Error| FetchFailure::of_disk(target, &error);
    let mut file = File::create(target).map_err(disk)?;
    let agent = agent(url);
    let mut version = None;
    let (mut tries, mut reached) = (0, 0);
    loop {
        let have = file.stream_position().map_err(disk)?;
        if have > reached {
            (tries, reached) = (0, have);
        }
        let broken = match request(&agent, url, have, version.as_deref())? {
            Ok((status, headers, body)) => {
                if status != StatusCode::PARTIAL_CONTENT {
                    // The whole of it comes, from its beginning.
                    file.set_len(0).and_then(|()| file.rewind()).map_err(disk)?;
                }
                version = version_of(&headers);
                match receive(body, &mut file, interrupt) {
                    Ok(()) => return file.sync_all().map_err(disk),
                    Err(Broken::Disk(error)) => return Err(disk(error)),
                    Err(Broken::Wire(error)) => shown_words(&error.to_string()),
                }
            }
            Err(why) => why,
        };
        tries += 1;
        if tries >= TRIES || interrupt.check().is_err() {
            return Err(FetchFailure::unreachable(format!("{}: {broken}", shown(url))));
        }
        tracing::info!(url = shown(url), have, why = broken, "a transfer broke and is taken up again");
        std::thread::sleep(PAUSE * tries);
    }
}

fn agent(url: &str) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .user_agent(concat!("muster-agent/", env!("CARGO_PKG_VERSION")))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE));
    // Whom this machine trusts is read only where it matters: it takes memory.
    let config = if url.starts_with("https://") {
        let found = rustls_native_certs::load_native_certs().certs;
        let roots: Vec<_> = found.iter().map(|it| Certificate::from_der(it.as_ref()).to_owned()).collect();
        config.tls_config(TlsConfig::builder().root_certs(RootCerts::new_with_certs(&roots)).build())
    } else {
        config
    };
    config.build().into()
}

type Answer = (StatusCode, HeaderMap, Body);

/// Asks for what follows. An answer that will be the same next time is a failure; what may go better is said in words.
fn request(
    agent: &Agent,
    url: &str,
    have: u64,
    version: Option<&str>,
) -> Result<Result<Answer, String>, FetchFailure> {
    // A checksum is that of the file, not of how it travels.
    let mut request = agent.get(url).header(ACCEPT_ENCODING, "identity");
    if let Some(version) = version.filter(|_| have > 0) {
        request = request.header(RANGE, format!("bytes={have}-")).header(IF_RANGE, version);
    }
    let answer = match request.call() {
        Ok(answer) => answer,
        Err(error) => {
            let (is_bad, why) = (is_bad_url(&error), shown_words(&error.to_string()));
            return if is_bad {
                Err(FetchFailure::bad(format!("{}: {why}", shown(url))))
            } else {
                Ok(Err(why))
            };
        }
    };
    let (head, body) = answer.into_parts();
    let status = head.status;
    if status.is_success() {
        return Ok(Ok((status, head.headers, body)));
    }
    let comes_and_goes = status.is_server_error()
        || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    if comes_and_goes {
        return Ok(Err(format!("the server answers {status}")));
    }
    Err(FetchFailure::refused(format!("{}: the server answers {status}", shown(url))))
}

fn is_bad_url(error: &ureq::Error) -> bool {
    matches!(error, ureq::Error::BadUri(_) | ureq::Error::Http(_))
}

/// What a server calls this version of the file, if it can be asked for the rest of just that.
fn version_of(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    text(ETAG).filter(|tag| !tag.starts_with("W/")).or_else(|| text(LAST_MODIFIED))
}

enum Broken {
    Disk(io::Error),
    Wire(io::Error),
}

fn receive(body: Body, file: &mut File, interrupt: &Interrupt) -> Result<(), Broken> {
    let mut reader = body.into_reader();
    let mut piece = vec![0; 64 << 10];
    loop {
        interrupt.check().map_err(Broken::Wire)?;
        match reader.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => file.write_all(&piece[..read]).map_err(Broken::Disk)?,
            Err(error) => return Err(Broken::Wire(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::thread::JoinHandle;

    use super::*;

    /// Answers each connection with the next text, and remembers what was asked.
    fn serve(answers: Vec<String>) -> (String, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/dir/file.txt", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let mut asked = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> = lines.map_while(Result::ok).take_while(|it| !it.is_empty()).collect();
                asked.push(head.join("\n").to_lowercase());
                stream.write_all(answer.as_bytes()).unwrap();
            }
            asked
        });
        (url, served)
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n{body}")
    }

    fn fetch(url: &str) -> (Result<(), FetchFailure>, String) {
        let dir = tempfile::tempdir().unwrap();
        let target: PathBuf = dir.path().join("file");
        let outcome = download(url, &target, &Interrupt::default());
        (outcome, std::fs::read_to_string(target).unwrap())
    }

    #[test]
    fn a_transfer_that_breaks_goes_on_where_it_broke() {
        let (url, served) = serve(vec![
            answer("200 OK", "Content-Length: 10\r\nETag: \"v1\"\r\n", "01234"),
            answer("206 Partial Content", "Content-Length: 5\r\nETag: \"v1\"\r\n", "56789"),
        ]);
        assert_eq!(fetch(&url), (Ok(()), "0123456789".to_owned()));
        let asked = served.join().unwrap();
        assert!(!asked[0].contains("range:"), "{}", asked[0]);
        assert!(
            asked[1].contains("range: bytes=5-") && asked[1].contains("if-range: \"v1\""),
            "{}",
            asked[1]
        );
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_fetched_anew() {
        let (url, _served) = serve(vec![
            answer("200 OK", "Content-Length: 10\r\nETag: \"v1\"\r\n", "01234"),
            answer("200 OK", "Content-Length: 3\r\nETag: \"v2\"\r\n", "new"),
        ]);
        assert_eq!(fetch(&url), (Ok(()), "new".to_owned()));
    }

    #[test]
    fn a_server_that_is_busy_is_asked_again() {
        let (url, _served) =
            serve(vec![answer("503 Busy", "", ""), answer("200 OK", "Content-Length: 2\r\n", "ok")]);
        assert_eq!(fetch(&url), (Ok(()), "ok".to_owned()));
    }

    #[test]
    fn what_is_not_there_is_not_asked_for_again() {
        let (url, served) = serve(vec![answer("404 Not Found", "", "no")]);
        let failure = fetch(&url).0.unwrap_err();
        assert_eq!((failure.reason, failure.transient), ("ArtifactNotFound", false));
        assert!(failure.message.contains("404"), "{}", failure.message);
        assert_eq!(served.join().unwrap().len(), 1);
    }

    #[test]
    fn a_failure_names_no_secret_of_its_url() {
        let (plain, _served) = serve(vec![answer("404 Not Found", "", "no")]);
        let secret = |url: &str| format!("{}?sig=hunter2", url.replace("http://", "http://me:hunter2@"));
        let message = fetch(&secret(&plain)).0.unwrap_err().message;
        assert!(message.contains(&plain) && !message.contains("hunter2"), "{message}");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (redirects, _served) = serve(vec![answer("302 Found", "Location: http://\r\n", "")]);
        let bad = ["http://me:hunter2@a b/", "http://me:hunter2@/x"].map(str::to_owned);
        for url in bad.into_iter().chain([secret(&format!("http://127.0.0.1:{port}/x")), secret(&redirects)])
        {
            let message = fetch(&url).0.unwrap_err().message;
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn where_nobody_answers_it_may_go_better_later() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let failure = fetch(&format!("http://127.0.0.1:{port}/x")).0.unwrap_err();
        assert_eq!((failure.reason, failure.transient), ("ArtifactUnreachable", true));
    }

    #[test]
    fn a_redirect_is_followed() {
        let (there, _served) = serve(vec![answer("200 OK", "Content-Length: 5\r\n", "there")]);
        let (url, _asked) = serve(vec![answer("302 Found", &format!("Location: {there}\r\n"), "")]);
        assert_eq!(fetch(&url), (Ok(()), "there".to_owned()));
    }
}
