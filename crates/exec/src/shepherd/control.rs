//! The socket to whoever gives the orders.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fd::{AsFd, BorrowedFd};

use super::orders::{Command, Report};
use crate::frame::{Decoder, encode};
use crate::warden;

const READ: usize = 64 << 10;

/// Whether the other side is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Open,
    Closed,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Control {
    socket: UnixStream,
    decoder: Decoder,
    out: Vec<u8>,
    buffer: Vec<u8>,
    /// It has said how to work: only then is it told anything.
    pub(super) has_begun: bool,
}

impl Control {
    /// Takes the socket from the input, so that no program inherits it.
    pub(super) fn take_over_input() -> io::Result<Self> {
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        warden::close_input()?;
        Self::over(socket)
    }

    pub(super) fn over(socket: UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (decoder, buffer) = (Decoder::default(), vec![0; READ]);
        Ok(Self { socket, decoder, out: Vec::new(), buffer, has_begun: false })
    }

    /// Whether something could not be written at once.
    pub(super) fn is_blocked(&self) -> bool {
        !self.out.is_empty()
    }

    /// Takes in what has come. Orders that came before the end are carried out.
    pub(super) fn read(&mut self, commands: &mut VecDeque<Command>) -> Stream {
        let mut stream = Stream::Open;
        loop {
            match self.socket.read(&mut self.buffer) {
                Ok(0) => stream = Stream::Closed,
                Ok(read) => {
                    self.decoder.extend(&self.buffer[..read]);
                    // As much as there was room for: there may be more.
                    if read == self.buffer.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => stream = Stream::Closed,
            }
            break;
        }
        loop {
            match self.decoder.next_message() {
                Ok(Some(command)) => commands.push_back(command),
                Ok(None) => return stream,
                // Whoever cannot be understood may as well not be there.
                Err(_) => return Stream::Closed,
            }
        }
    }

    pub(super) fn say(&mut self, report: &Report) -> io::Result<()> {
        encode(report, &mut self.out).map_err(io::Error::other)
    }

    /// Writes what can be written now; never waits for the reader.
    pub(super) fn write(&mut self) -> Stream {
        while !self.out.is_empty() {
            match self.socket.write(&self.out) {
                Ok(written) => drop(self.out.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Stream::Closed,
            }
        }
        Stream::Open
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
