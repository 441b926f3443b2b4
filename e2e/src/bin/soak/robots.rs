//! The robots of a soak: real agents, of which one is killed now and then.

use std::path::Path;
use std::time::{Duration, Instant};

use muster_e2e::agent::Agent;
use muster_e2e::http::Http;
use muster_sim::dice::Dice;
use muster_sim::judge::history::What;

use crate::recorder::Recorder;
use crate::watches::API;

/// How many there are, and what each runs at once.
const ROBOTS: u64 = 3;
const MAX_TASKS: &str = "2";
/// An agent that was started needs so long at least until the server has heard of it.
const SETTLES: Duration = Duration::from_secs(3);
/// How long a robot may take to come back, while servers come and go.
const BACK: Duration = Duration::from_mins(3);

/// All robots.
pub struct Robots {
    all: Vec<(String, Agent)>,
    doors: Vec<Http>,
    recorder: Recorder,
}

impl Robots {
    /// Starts them and waits until they are there.
    pub fn start(dir: &Path, port: u16, token: &str, doors: &[Http], recorder: &Recorder) -> Self {
        let url = format!("mqtt://127.0.0.1:{port}");
        let start = |number: u64| {
            let name = format!("r{number}");
            let zone = if number.is_multiple_of(2) { "zone=even" } else { "zone=odd" };
            let work_dir = dir.join(&name);
            recorder.name_place(&work_dir, &format!("robot/{name}"));
            let agent =
                Agent::start(&name, &url, token, &work_dir, &["--max-tasks", MAX_TASKS, "--label", zone]);
            (name, agent)
        };
        let robots =
            Self { all: (0..ROBOTS).map(start).collect(), doors: doors.to_vec(), recorder: recorder.clone() };
        for (name, _) in &robots.all {
            robots.wait_for(name, Duration::ZERO);
        }
        robots
    }

    /// Kills an agent, with what it runs or without, and starts it again after a while.
    pub fn kill_one(&mut self, dice: &mut Dice, with_programs: bool) {
        let number = usize::try_from(dice.below(ROBOTS)).unwrap_or(0);
        let (name, agent) = &mut self.all[number];
        self.recorder.note(What::Link(name.clone(), false));
        if with_programs {
            agent.cut_power();
        } else {
            agent.kill();
        }
        // Sometimes for so long that it counts as lost.
        let away = if dice.once_in(3) { 18_000 } else { 4_000 };
        std::thread::sleep(Duration::from_millis(dice.below(away)));
        agent.restart();
        let name = name.clone();
        self.wait_for(&name, SETTLES);
        self.recorder.note(What::Link(name, true));
    }

    /// Waits until a server says that a robot is connected, and does not say it of the agent before.
    fn wait_for(&self, name: &str, settles: Duration) {
        let began = Instant::now();
        while began.elapsed() < BACK {
            std::thread::sleep(Duration::from_millis(200));
            let is_back = |door: &Http| {
                let answer = door.request("GET", &format!("{API}/robots/{name}")).try_send();
                let robot = answer.ok().filter(|answer| answer.code == 200).map(|answer| answer.json());
                robot.is_some_and(|robot| {
                    let conditions = robot["status"]["conditions"].as_array().cloned().unwrap_or_default();
                    let connected =
                        conditions.iter().any(|it| it["type"] == "Connected" && it["status"] == "True");
                    connected && robot["status"]["phase"] == "Online"
                })
            };
            if began.elapsed() > settles && self.doors.iter().any(is_back) {
                return;
            }
        }
        self.recorder.trouble(format!("robot {name} did not come back within {BACK:?}"));
    }
}
