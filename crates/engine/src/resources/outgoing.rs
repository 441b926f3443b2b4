//! What adapters do outside besides tasks, handed to whoever does it.

use std::time::Duration;

use muster_ports::outbound::{HttpCall, OutboundAnswer, OutboundCall, Ticket};
use muster_resources::plan::{Call, CallState, CallWhat};
use muster_types::adapter_action::{HttpAction, HttpMethod};
use serde_json::Value as Json;

use super::Resources;

/// How long an answer may take, if the adapter does not say.
const PATIENCE: Duration = Duration::from_secs(10);

impl Resources {
    /// Makes a call that was decided and committed.
    pub(super) fn make_call(&mut self, uid: &str, call: Call) {
        let Call { adapter, number, what } = call;
        let ticket = Ticket { uid: uid.to_owned(), adapter, number };
        let call = translate(what);
        match (call, &self.outbound) {
            (Ok(call), Some(outbound)) => {
                let calls = self.calls.entry(ticket.uid.clone()).or_default();
                calls.insert(ticket.adapter.clone(), CallState::Open);
                outbound.call(ticket, call);
            }
            (Err(message), _) => self.answer(OutboundAnswer { ticket, answer: Err(message) }),
            (Ok(_), None) => {
                let answer = Err("this server makes no calls".to_owned());
                self.answer(OutboundAnswer { ticket, answer });
            }
        }
    }
}

fn translate(what: CallWhat) -> Result<OutboundCall, String> {
    Ok(match what {
        CallWhat::Http(document) => OutboundCall::Http(http_call(document)?),
        CallWhat::Apply(manifest) => OutboundCall::Apply(manifest),
        CallWhat::Delete(manifest) => OutboundCall::Delete(manifest),
    })
}

fn http_call(document: Json) -> Result<HttpCall, String> {
    let action: HttpAction =
        serde_json::from_value(document).map_err(|error| format!("the call cannot be made: {error}"))?;
    let default = if action.body.is_some() { HttpMethod::Post } else { HttpMethod::Get };
    Ok(HttpCall {
        method: action.method.unwrap_or(default),
        url: action.url,
        headers: action.headers,
        body: action.body,
        timeout: action.timeout.map_or(PATIENCE, muster_types::Duration::as_std),
    })
}
