//! Whole traces, recognised by their shape.
//!
//! Python's `ldfi.lineage.recognition` says what a shape is: the number of a subtree stands for its
//! operation and the *set* of numbers below it. It is the same here, with one difference: children
//! are ordered by depth and not by time, so clocks that disagree cost nothing. Only plain trees are
//! taken: every span id once, one root, everybody else's parent there, nobody who may go on alone,
//! nothing that began when what it is inside of had ended.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// What is asked of an operation here.
pub trait Meaning {
    /// What it is known by, as long as it is kept.
    fn id(&self) -> usize;
    /// The callee's side of a call.
    fn serves(&self) -> bool;
    /// A request may enter here, although its parent is not there.
    fn enters(&self) -> bool;
    /// Perhaps nobody waits for it, or a fault was carried out in it.
    fn detached(&self) -> bool;
    /// A call of a point that somebody may answer.
    fn calls(&self) -> bool;
}

/// One span of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a, M> {
    /// Its id.
    pub id: [u8; 8],
    /// Its parent's.
    pub parent: Option<[u8; 8]>,
    /// When it began: nanoseconds since the epoch.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// What it means.
    pub meaning: &'a M,
}

/// A trace that is a plain tree.
#[derive(Debug, PartialEq, Eq)]
pub struct Plain {
    /// The number of its shape.
    pub number: u64,
    /// The place of its root.
    pub root: usize,
}

/// Subtrees remembered. When there are more, everything is forgotten, which is rare.
const MEMORY: usize = 200_000;

/// The numbers given so far.
#[derive(Debug)]
pub struct Shelf<M> {
    numbers: HashMap<Box<[u64]>, u64, RandomState>,
    kept: HashMap<usize, M, RandomState>,
    next: u64,
    room: Room,
}

#[derive(Debug, Default)]
struct Room {
    places: HashMap<[u8; 8], usize, RandomState>,
    parents: Vec<usize>,
    waiting: Vec<u32>,
    below: Vec<Vec<u64>>,
    ready: Vec<usize>,
    key: Vec<u64>,
}

/// No parent.
const NONE: usize = usize::MAX;

/// Nanoseconds by which two times of one clock may differ as they are written down
/// (`ldfi.lineage.message_waits`).
const TICK: u64 = 1_000_000;

impl<M: Meaning + Clone> Default for Shelf<M> {
    fn default() -> Self {
        let (numbers, kept) = (HashMap::default(), HashMap::default());
        Shelf { numbers, kept, next: 0, room: Room::default() }
    }
}

impl<M: Meaning + Clone> Shelf<M> {
    /// The shape of a trace; none for one that is no plain tree. Numbers are never given twice.
    pub fn recognise(&mut self, nodes: &[Node<M>]) -> Option<Plain> {
        if self.numbers.len() > MEMORY {
            self.numbers.clear();
            self.kept.clear();
        }
        let mut space = std::mem::take(&mut self.room);
        let root = space.link(nodes);
        let number = root.and_then(|_| self.number(nodes, &mut space));
        self.room = space;
        Some(Plain { number: number?, root: root? })
    }

    /// The number of the root, which comes last; none where some are inside one another.
    fn number(&mut self, nodes: &[Node<M>], room: &mut Room) -> Option<u64> {
        let mut latest = None;
        let mut done = 0;
        while let Some(place) = room.ready.pop() {
            let (node, below) = (nodes.get(place)?, room.below.get_mut(place)?);
            below.sort_unstable();
            below.dedup();
            room.key.clear();
            room.key.push(node.meaning.id() as u64);
            room.key.append(below);
            let number = match self.numbers.get(room.key.as_slice()) {
                Some(&known) => known,
                None => self.add(&room.key, node.meaning),
            };
            let parent = *room.parents.get(place)?;
            if parent != NONE {
                room.below.get_mut(parent)?.push(number);
                let waiting = room.waiting.get_mut(parent)?;
                *waiting -= 1;
                if *waiting == 0 {
                    room.ready.push(parent);
                }
            }
            latest = Some(number);
            done += 1;
        }
        latest.filter(|_| done == nodes.len())
    }

    fn add(&mut self, key: &[u64], meaning: &M) -> u64 {
        self.next += 1;
        self.numbers.insert(key.into(), self.next);
        self.kept.entry(meaning.id()).or_insert_with(|| meaning.clone());
        self.next
    }
}

impl Room {
    /// Find every parent, and the root; none where this is no plain tree.
    fn link<M: Meaning>(&mut self, nodes: &[Node<M>]) -> Option<usize> {
        self.places.clear();
        for (place, node) in nodes.iter().enumerate() {
            if self.places.insert(node.id, place).is_some() {
                return None;
            }
        }
        self.parents.clear();
        self.ready.clear();
        self.waiting.clear();
        self.waiting.resize(nodes.len(), 0);
        self.below.iter_mut().for_each(Vec::clear);
        self.below.resize_with(self.below.len().max(nodes.len()), Vec::new);
        let mut root = None;
        for (place, node) in nodes.iter().enumerate() {
            let parent = node.parent.and_then(|id| self.places.get(&id).copied());
            if let Some(parent) = parent {
                if node.meaning.detached() {
                    return None;
                }
                *self.waiting.get_mut(parent)? += 1;
                self.parents.push(parent);
            } else {
                let enters = node.parent.is_none() || node.meaning.enters();
                if root.replace(place).is_some() || !enters {
                    return None;
                }
                self.parents.push(NONE);
            }
        }
        if (0..nodes.len()).any(|place| self.late(nodes, place)) {
            return None;
        }
        let leaves = self.waiting.iter().enumerate().filter(|(_, &waiting)| waiting == 0);
        self.ready.extend(leaves.map(|(place, _)| place));
        root
    }

    /// Whether something may have begun when its service had ended its part of the request.
    fn late<M: Meaning>(&self, nodes: &[Node<M>], place: usize) -> bool {
        let Some(node) = nodes.get(place).filter(|node| !node.meaning.serves()) else {
            return false;
        };
        let mut above = self.parents.get(place).copied().unwrap_or(NONE);
        for _ in 0..nodes.len() {
            let Some(around) = nodes.get(above) else { return false };
            let next = self.parents.get(above).copied().unwrap_or(NONE);
            if around.meaning.serves() || next == NONE {
                return around.end > around.start && node.start > around.end.saturating_add(TICK);
            }
            above = next;
        }
        false
    }
}

/// What is told of the operations in a plain tree, each with how many spans there are of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Of spans that serve, below others: by the place of one of them.
    pub under: Vec<(usize, usize)>,
    /// Of calls with an answer below them.
    pub answered: Vec<(usize, usize)>,
    /// Of calls without.
    pub unanswered: Vec<(usize, usize)>,
}

/// Count what a system can be expected to do by what it did in this trace.
#[must_use]
pub fn told<M: Meaning>(nodes: &[Node<M>]) -> Told {
    let answered: HashMap<[u8; 8], (), RandomState> = nodes
        .iter()
        .filter(|node| node.meaning.serves())
        .filter_map(|node| Some((node.parent?, ())))
        .collect();
    let mut told = Told::default();
    for (place, node) in nodes.iter().enumerate() {
        if node.meaning.serves() && node.parent.is_some() {
            count(&mut told.under, nodes, place);
        }
        if node.meaning.calls() {
            let list = if answered.contains_key(&node.id) {
                &mut told.answered
            } else {
                &mut told.unanswered
            };
            count(list, nodes, place);
        }
    }
    told
}

fn count<M: Meaning>(list: &mut Vec<(usize, usize)>, nodes: &[Node<M>], place: usize) {
    let id = |place: usize| nodes.get(place).map(|node| node.meaning.id());
    match list.iter_mut().find(|(known, _)| id(*known) == id(place)) {
        Some((_, times)) => *times += 1,
        None => list.push((place, 1)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Debug, Clone)]
    struct Of(usize);

    impl Meaning for Of {
        fn id(&self) -> usize {
            self.0
        }
        fn serves(&self) -> bool {
            self.0 < 10
        }
        fn enters(&self) -> bool {
            self.0 < 10
        }
        fn detached(&self) -> bool {
            self.0 > 90
        }
        fn calls(&self) -> bool {
            self.0 >= 10
        }
    }

    fn number(shelf: &mut Shelf<Of>, spans: &[(u8, u8, usize)]) -> Option<u64> {
        let meanings: Vec<Of> = spans.iter().map(|span| Of(span.2)).collect();
        let nodes: Vec<Node<Of>> = spans
            .iter()
            .zip(&meanings)
            .map(|(&(id, parent, _), meaning)| Node {
                id: [id; 8],
                parent: (parent > 0).then_some([parent; 8]),
                start: 1,
                end: 2,
                meaning,
            })
            .collect();
        shelf.recognise(&nodes).map(|plain| plain.number)
    }

    #[test]
    fn order_and_repetition_make_no_shape() {
        let mut shelf = Shelf::default();
        let one = number(&mut shelf, &[(1, 0, 1), (2, 1, 11), (3, 1, 12)]).unwrap();
        assert_eq!(number(&mut shelf, &[(8, 9, 12), (9, 0, 1), (7, 9, 11), (6, 9, 11)]), Some(one));
        assert_ne!(number(&mut shelf, &[(1, 0, 1), (2, 1, 11), (3, 2, 12)]), Some(one));
    }

    #[test]
    fn what_is_no_plain_tree_has_no_number() {
        let mut shelf = Shelf::default();
        for spans in [
            &[][..],
            &[(1, 0, 1), (1, 0, 1)],
            &[(1, 0, 1), (2, 0, 1)],
            &[(1, 0, 1), (2, 9, 11)],
            &[(1, 9, 11)],
            &[(1, 1, 1)],
            &[(1, 2, 1), (2, 1, 1)],
            &[(1, 0, 1), (2, 3, 11), (3, 2, 11)],
            &[(1, 0, 1), (2, 1, 91)],
        ] {
            assert_eq!(number(&mut shelf, spans), None, "{spans:?}");
        }
        assert!(number(&mut shelf, &[(1, 9, 1)]).is_some());
    }

    #[test]
    fn what_began_too_late_makes_no_plain_tree() {
        let meanings = [Of(1), Of(11), Of(12)];
        let recognised = |starts: [u64; 3], end: u64| {
            let nodes: Vec<Node<Of>> = (0_u8..)
                .zip(starts)
                .zip(&meanings)
                .map(|((place, start), meaning)| Node {
                    id: [place; 8],
                    parent: place.checked_sub(1).map(|above| [above; 8]),
                    start,
                    end: if place == 0 { end } else { 9 * TICK },
                    meaning,
                })
                .collect();
            Shelf::default().recognise(&nodes).is_some()
        };
        assert!(recognised([0, 1, 2], TICK));
        assert!(recognised([0, 1, 2 * TICK], TICK));
        assert!(recognised([0, 1, 9 * TICK], 0)); // it does not say when it ended
        assert!(!recognised([0, 1, 2 * TICK + 1], TICK));
        assert!(!recognised([0, 3 * TICK, 3 * TICK], TICK));
    }

    #[test]
    fn calls_are_answered_by_what_serves_below_them() {
        let meanings = [Of(1), Of(11), Of(2), Of(11), Of(12)];
        let nodes: Vec<Node<Of>> = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 1)]
            .iter()
            .zip(&meanings)
            .map(|(&(id, parent), meaning): (&(u8, u8), &Of)| Node {
                id: [id; 8],
                parent: (parent > 0).then_some([parent; 8]),
                start: 1,
                end: 2,
                meaning,
            })
            .collect();
        let expected =
            Told { under: vec![(2, 1)], answered: vec![(1, 1)], unanswered: vec![(3, 1), (4, 1)] };
        assert_eq!(told(&nodes), expected);
    }
}
