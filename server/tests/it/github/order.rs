//! Deliveries that come late, twice, in another order, and to two servers at once: what is started in the end is what
//! the newest state asks for, once.

use futures_util::future::join_all;
use plimsoll_server::github::events;
use plimsoll_server::tasks::github::handle;

use super::actor::{Site, short};
use super::fake::payloads::Delivery;
use crate::app::App;

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A repository whose project and branch have its name.
struct World<'a> {
    site: &'a Site,
    id: i64,
    name: String,
    dice: Dice,
    /// Not delivered yet, or to be delivered once more.
    late: Vec<Delivery>,
    seconds: i64,
}

impl World<'_> {
    /// Something happens; GitHub's clock stands still at times.
    fn step(&mut self, n: usize) {
        self.seconds += i64::try_from(self.dice.below(2)).unwrap();
        let what = self.dice.below(6);
        let text = n.to_string();
        let mut model = self.site.github.model();
        model.clock = Some(at(self.seconds));
        let now = model.now();
        let event = match what {
            0 | 1 => {
                model.push(self.id, "change", &[("src/app.py", Some(&text))]);
                model.pull_event(self.id, 1, "synchronize")
            }
            2 => {
                let pull = model.repo(self.id).pulls.get_mut(&1).unwrap();
                (pull.open, pull.updated_at) = (!pull.open, now);
                let action = if pull.open { "reopened" } else { "closed" };
                model.pull_event(self.id, 1, action)
            }
            3 => {
                let before = model.repositories[&self.id].branches["main"].clone();
                model.push(self.id, "main", &[("src/app.py", Some(&text))]);
                model.push_event(self.id, "main", Some(&before))
            }
            _ => {
                let commit = model.repositories[&self.id].branches["main"].clone();
                model.tag(self.id, "v1.0.0", &commit, n.is_multiple_of(2));
                if what == 4 { model.tag_event(self.id, "v1.0.0") } else { model.create_event(self.id, "v1.0.0") }
            }
        };
        drop(model);
        self.late.push(event);
    }

    /// Some of what is late arrives; some of that will come again.
    async fn deliver(&mut self, servers: [&App; 2]) {
        for _ in 0..self.dice.below(3).min(self.late.len()) {
            let at = self.dice.below(self.late.len());
            let again = self.dice.below(3) == 0;
            let event = if again { self.late[at].clone() } else { self.late.swap_remove(at) };
            give(servers[self.dice.below(2)], &event).await;
        }
    }

    /// All the rest at once.
    async fn end(&mut self, servers: [&App; 2]) {
        let late = std::mem::take(&mut self.late);
        join_all(late.iter().enumerate().map(|(n, event)| give(servers[n % 2], event))).await;
    }

    async fn assert_newest(&self) {
        let (open, head, main, tag) = {
            let model = self.site.github.model();
            let at = &model.repositories[&self.id];
            let pull = &at.pulls[&1];
            let tag = at.tags.get("v1.0.0").map(|object| at.tag_objects.get(object).unwrap_or(object).clone());
            (pull.open, pull.head.clone(), at.branches["main"].clone(), tag)
        };
        let waiting = async |key| self.commits(key, "state = 'queued'").await;
        let expected = if open { vec![head] } else { vec![] };
        assert_eq!(waiting("pull 1").await, expected, "{}", self.name);
        let pushed = !self.commits("branch main", "true").await.is_empty();
        assert_eq!(waiting("branch main").await, if pushed { vec![main] } else { vec![] }, "{}", self.name);
        assert_eq!(waiting("tag v1.0.0").await, Vec::from_iter(tag), "{}", self.name);
        let untold = "select count(*) from github_checks c where project = $1 and not exists
                          (select 1 from github_writes w where w.check_id = c.id)";
        let untold = sqlx::query_scalar::<_, i64>(untold).bind(&self.name).fetch_one(&self.site.server.pool).await;
        assert_eq!(untold.unwrap(), 0, "{}", self.name);
    }

    async fn commits(&self, key: &str, condition: &str) -> Vec<String> {
        let sql = format!(
            "select revision ->> 'commit' from jobs where project = $1 and supersedes = $2 and {condition}
             order by created_at"
        );
        let found = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(&self.name).bind(key);
        found.fetch_all(&self.site.server.pool).await.unwrap()
    }
}

fn at(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_790_000_000 + seconds).unwrap()
}

/// A server handles an event, whatever it does with others meanwhile.
async fn give(server: &App, (event, payload): &Delivery) {
    let event = events::read(event, payload.to_string().as_bytes()).unwrap();
    handle(&server.state, &event).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_order_the_newest_is_judged_and_each_tag_once() {
    let site = Site::new().await;
    let other = site.server.beside_with(site.github.settings()).await;
    for seed in 0..24 {
        let name = format!("world-{seed}");
        let (id, place) = site.github.repository(&format!("octo/{name}"));
        let reached = site.github.model().installation_event(place.installation, "created");
        give(&site.server, &reached).await;
        site.link(id, &name, &["src/**"], None).await;
        let opened = {
            let mut model = site.github.model();
            model.clock = Some(at(0));
            model.push(id, "change", &[("src/app.py", Some("0"))]);
            let number = model.open_pull(id, "change", "mona");
            model.pull_event(id, number, "opened")
        };
        let mut world = World { site: &site, id, name, dice: Dice(seed), late: vec![opened], seconds: 0 };
        for n in 1..=12 {
            world.step(n);
            world.deliver([&site.server, &other]).await;
        }
        world.end([&site.server, &other]).await;
        world.assert_newest().await;
    }
    site.github.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_that_handle_the_same_at_once_start_it_once() {
    let site = Site::new().await;
    let other = site.server.beside_with(site.github.settings()).await;
    let (number, head) = site.pull("faster", "src/app.py");
    let (words, of_words) = site.pull("words", "docs/a.md");
    let events = {
        let mut model = site.github.model();
        let commit = model.repositories[&site.id].branches["main"].clone();
        model.tag(site.id, "v1.0.0", &commit, false);
        [
            model.pull_event(site.id, number, "opened"),
            model.pull_event(site.id, words, "opened"),
            model.tag_event(site.id, "v1.0.0"),
            model.create_event(site.id, "v1.0.0"),
            model.push_event(site.id, "main", None),
        ]
    };
    let all = events.iter().cycle().take(40).enumerate();
    join_all(all.map(|(n, event)| give(if n % 2 == 0 { &site.server } else { &other }, event))).await;
    let mut checks = site.checks().await;
    checks.sort();
    let main = site.github.model().repositories[&site.id].branches["main"].clone();
    let mut expected = [
        format!("branch {} run", short(&main)),
        format!("pull_request {} run", short(&head)),
        format!("pull_request {} success", short(&of_words)),
        format!("tag {} run", short(&main)),
    ];
    expected.sort();
    assert_eq!(checks, expected);
    assert_eq!(site.runs().await.len(), 3);
    site.github.end();
}
