//! `muster watch job/NAME`: a tree of progress bars on a terminal, lines otherwise, until the job has ended.

use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::process::ExitCode;

use super::session::Session;
use super::tracking::Seen;
use super::work::Work;
use super::work_tree::Tree;
use crate::cli::{Globals, state_of};
use crate::output::streams;

/// Shows a job or a group until it has ended or is gone.
pub async fn run(globals: &Globals, work: &Work) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    work.get(&session).await?;
    let mut screen = io::stdout().is_terminal().then(Screen::default);
    let mut before: Option<Tree> = None;
    work.track(&session)
        .run(|seen| {
            let object = match seen {
                Seen::Task(object) => object,
                Seen::Gone(name) => {
                    streams::print(&format!("{name} deleted\n"))?;
                    return Ok(ControlFlow::Break(()));
                }
                Seen::Listed => return Ok(ControlFlow::Continue(())),
            };
            let tree = Tree::read(object);
            match &mut screen {
                Some(screen) => screen.draw(&tree)?,
                None => {
                    for line in tree.news(before.as_ref()) {
                        streams::print(&format!("{line}\n"))?;
                    }
                }
            }
            before = Some(tree);
            Ok(if state_of(object).is_terminal() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            })
        })
        .await?;
    Ok(ExitCode::SUCCESS)
}

/// A place on the terminal that is drawn over.
#[derive(Default)]
struct Screen {
    drawn: usize,
}

impl Screen {
    fn draw(&mut self, tree: &Tree) -> io::Result<()> {
        let (height, width) = console::Term::stdout().size();
        let lines = tree.lines(usize::from(height.max(6)) - 1);
        let mut text = if self.drawn > 0 { format!("\x1b[{}A", self.drawn) } else { String::new() };
        for line in &lines {
            let line: String = line.chars().take(usize::from(width.max(20)) - 1).collect();
            text += &format!("\x1b[K{line}\n");
        }
        text += "\x1b[J";
        self.drawn = lines.len();
        streams::print(&text)
    }
}
