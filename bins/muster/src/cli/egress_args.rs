//! Flags of `up` about where the server connects to for adapters and event sinks.

use clap::Args;
use muster_egress::{EgressPolicy, EgressRule};

/// What objects may make the server connect to.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Egress")]
pub struct EgressArgs {
    /// Let adapters and event sinks connect to these ranges, addresses or host names, such as 10.0.0.0/8 or *.example.org [default:
    /// public addresses alone: no loopback, link-local or private ones]
    #[arg(long, value_name = "RULE", env = "MUSTER_EGRESS_ALLOW", value_delimiter = ',')]
    pub egress_allow: Vec<EgressRule>,
    /// Never let adapters and event sinks connect to these; wins over --egress-allow
    #[arg(long, value_name = "RULE", env = "MUSTER_EGRESS_DENY", value_delimiter = ',')]
    pub egress_deny: Vec<EgressRule>,
}

impl EgressArgs {
    /// The policy of these flags.
    pub fn policy(&self) -> EgressPolicy {
        EgressPolicy::new(self.egress_allow.clone(), self.egress_deny.clone())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::{Cli, Command};

    #[test]
    fn rules_are_repeated_or_separated_by_commas_and_nonsense_is_named() {
        let line = |flags: &[&'static str]| Cli::try_parse_from(["muster", "up"].iter().chain(flags));
        let flags =
            ["--egress-allow", "10.0.0.0/8,::1", "--egress-allow", "*.a.example", "--egress-deny", "b"];
        let Command::Up(args) = line(&flags).unwrap().command else { unreachable!("the verb is up") };
        let text =
            |rules: &[muster_egress::EgressRule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(text(&args.egress.egress_allow), ["10.0.0.0/8", "::1", "*.a.example"]);
        assert_eq!(text(&args.egress.egress_deny), ["b"]);
        let error = line(&["--egress-allow", "10.0.0.0/99"]).unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/99"), "{error}");
    }
}
