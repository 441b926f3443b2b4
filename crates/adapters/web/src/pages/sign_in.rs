//! Where somebody says who they are.

use maud::{DOCTYPE, Markup, html};

use crate::html::frame::head;

/// The page, with what was wrong with the last try.
pub fn page(problem: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head("Sign in"))
            body.door {
                main #main {
                    h1 { "Muster" }
                    p { "Sign in with a token. The admin's is in the file " code { "admin-token" } " of the data directory; " code { "muster token create" } " makes others." }
                    @if !problem.is_empty() { p.problem role="alert" { (problem) } }
                    form method="post" action="/ui/sign-in" {
                        label { "Token" input type="password" name="token" required autocomplete="current-password" autofocus; }
                        button { "Sign in" }
                    }
                }
            }
        }
    }
}
