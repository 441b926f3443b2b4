//! The API server without its sockets: every test drives `Api::handle` over a store in memory.

#[cfg(test)]
mod access;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod cascade;
#[cfg(test)]
mod decoders;
#[cfg(test)]
mod field_owners;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod server;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod writing;
