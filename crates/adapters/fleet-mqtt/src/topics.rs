//! The topics of the protocol (seed 003, section "data flow").

/// What all topics begin with if nothing else is said.
pub const DEFAULT_PREFIX: &str = "k8s4r";

/// The group of servers that share what robots say.
const GROUP: &str = "muster";

/// Topics below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topics {
    prefix: String,
}

/// What comes from robots, by its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inbound<'a> {
    /// A robot wants to join.
    Register,
    /// A robot is alive.
    Heartbeat,
    /// The connection of a robot came or went.
    Connection {
        /// Which robot.
        robot: &'a str,
    },
    /// What a robot knows of its attempts, after it connected.
    State {
        /// Which robot.
        robot: &'a str,
    },
    /// How an attempt stands.
    Status {
        /// Which robot.
        robot: &'a str,
        /// Uid of the task.
        task: &'a str,
    },
    /// Part of a log.
    Log {
        /// Which robot.
        robot: &'a str,
        /// Uid of the task.
        task: &'a str,
    },
}

impl Topics {
    /// Topics below a prefix.
    pub fn new(prefix: &str) -> Self {
        Self { prefix: prefix.trim_matches('/').to_owned() }
    }

    /// Where robots ask to join.
    pub fn register(&self) -> String {
        format!("{}/register", self.prefix)
    }

    /// Where robots say that they are alive.
    pub fn heartbeat(&self) -> String {
        format!("{}/heartbeat", self.prefix)
    }

    /// Where a robot hears whether it may join.
    pub fn response(&self, robot: &str) -> String {
        format!("{}/robots/{robot}/response", self.prefix)
    }

    /// Where a robot is told what to run and what not.
    pub fn dispatch(&self, robot: &str) -> String {
        format!("{}/robots/{robot}/tasks/dispatch", self.prefix)
    }

    /// Where a robot says which attempts it knows.
    pub fn state(&self, robot: &str) -> String {
        format!("{}/robots/{robot}/tasks/state", self.prefix)
    }

    /// Where it is said that a robot is connected; its last will goes there too.
    pub fn connection(&self, robot: &str) -> String {
        format!("{}/robots/{robot}/connection", self.prefix)
    }

    /// Where a robot says how an attempt stands.
    pub fn status(&self, robot: &str, task: &str) -> String {
        format!("{}/robots/{robot}/tasks/{task}/status", self.prefix)
    }

    /// Where a robot puts what an attempt wrote.
    pub fn log(&self, robot: &str, task: &str) -> String {
        format!("{}/robots/{robot}/tasks/{task}/log", self.prefix)
    }

    /// What every server subscribes to that listens to robots. A wish to join and a sign of life go to one of them; that a
    /// connection came or went to all of them, because the order of the two matters.
    pub fn reception_filters(&self) -> Vec<String> {
        let shared = [self.register(), self.heartbeat()].map(|topic| format!("$share/{GROUP}/{topic}"));
        shared.into_iter().chain([self.connection("+")]).collect()
    }

    /// What the server subscribes to that dispatches.
    pub fn desk_filters(&self) -> Vec<String> {
        vec![self.state("+"), self.status("+", "+"), self.log("+", "+")]
    }

    /// What a robot subscribes to.
    pub fn robot_filters(&self, robot: &str) -> Vec<String> {
        vec![self.response(robot), self.dispatch(robot)]
    }

    /// What a topic from a robot is about; `None` if it is none of those.
    pub fn parse<'a>(&self, topic: &'a str) -> Option<Inbound<'a>> {
        let rest = topic.strip_prefix(&self.prefix)?.strip_prefix('/')?;
        let parts: Vec<&str> = rest.split('/').collect();
        Some(match parts[..] {
            ["register"] => Inbound::Register,
            ["heartbeat"] => Inbound::Heartbeat,
            ["robots", robot, "connection"] => Inbound::Connection { robot },
            ["robots", robot, "tasks", "state"] => Inbound::State { robot },
            ["robots", robot, "tasks", task, "status"] => Inbound::Status { robot, task },
            ["robots", robot, "tasks", task, "log"] => Inbound::Log { robot, task },
            _ => return None,
        })
    }

    /// True if a robot may publish on a topic. One that has not joined may only ask to.
    pub fn may_publish(&self, robot: &str, joined: bool, topic: &str) -> bool {
        match self.parse(topic) {
            Some(Inbound::Register) => true,
            Some(Inbound::Heartbeat) => joined,
            Some(
                Inbound::Connection { robot: named }
                | Inbound::State { robot: named }
                | Inbound::Status { robot: named, .. }
                | Inbound::Log { robot: named, .. },
            ) => joined && named == robot,
            None => false,
        }
    }

    /// True if a robot may subscribe to a filter: its own topics, spelled out.
    pub fn may_subscribe(&self, robot: &str, joined: bool, filter: &str) -> bool {
        filter == self.response(robot) || (joined && filter == self.dispatch(robot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_those_of_the_seed() {
        let topics = Topics::new(DEFAULT_PREFIX);
        assert_eq!(topics.register(), "k8s4r/register");
        assert_eq!(topics.heartbeat(), "k8s4r/heartbeat");
        assert_eq!(topics.response("r1"), "k8s4r/robots/r1/response");
        assert_eq!(topics.dispatch("r1"), "k8s4r/robots/r1/tasks/dispatch");
        assert_eq!(topics.status("r1", "u"), "k8s4r/robots/r1/tasks/u/status");
    }

    #[test]
    fn servers_share_what_one_of_them_is_to_hear_and_each_hears_of_connections() {
        let topics = Topics::new("p");
        let shared = ["$share/muster/p/register", "$share/muster/p/heartbeat", "p/robots/+/connection"];
        assert_eq!(topics.reception_filters(), shared);
        let alone = ["p/robots/+/tasks/state", "p/robots/+/tasks/+/status", "p/robots/+/tasks/+/log"];
        assert_eq!(topics.desk_filters(), alone);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let topics = Topics::new("a/b");
        assert_eq!(topics.parse(&topics.status("r", "u")), Some(Inbound::Status { robot: "r", task: "u" }));
        assert_eq!(topics.parse(&topics.state("r")), Some(Inbound::State { robot: "r" }));
        assert_eq!(topics.parse(&topics.connection("r")), Some(Inbound::Connection { robot: "r" }));
        assert_eq!(topics.parse(&topics.dispatch("r")), None, "that does not come from robots");
        assert_eq!(topics.parse("a/bc/register"), None);
    }

    #[test]
    fn a_robot_may_use_its_own_topics_alone() {
        let topics = Topics::new("p");
        assert!(topics.may_publish("r1", true, "p/robots/r1/tasks/u/status"));
        assert!(!topics.may_publish("r1", true, "p/robots/r2/tasks/u/status"));
        assert!(!topics.may_publish("r1", true, "p/robots/r1/tasks/dispatch"));
        assert!(topics.may_subscribe("r1", true, "p/robots/r1/tasks/dispatch"));
        for filter in ["p/robots/r2/tasks/dispatch", "p/robots/+/tasks/dispatch", "#", "p/#", "p/robots/r1/#"]
        {
            assert!(!topics.may_subscribe("r1", true, filter), "{filter}");
        }
    }

    #[test]
    fn a_robot_that_has_not_joined_may_only_ask_to() {
        let topics = Topics::new("p");
        assert!(topics.may_publish("r1", false, "p/register"));
        assert!(!topics.may_publish("r1", false, "p/heartbeat"));
        assert!(topics.may_subscribe("r1", false, "p/robots/r1/response"));
        assert!(!topics.may_subscribe("r1", false, "p/robots/r1/tasks/dispatch"));
    }
}
