//! Proof that a stabilizer chain is complete, from its last level up.
//!
//! Let G be the group of a level, b its base point, D the orbit of b, and u_d an element of G that maps b to d. The group H
//! of the next level, proved before, is the stabilizer of b in G if and only if every generator g of G maps the coset u_d H
//! to that of g(d), for all d: u_{g(d)}^-1 g u_d lies in H. These are the equations of Schreier's lemma; fewer will do:
//!
//! 1. For one point d of each orbit of H on D, and generators k of the stabilizer H_d, u_d^-1 k u_d lies in H. Then the
//!    coset h u_d H of an h in H depends on h(d) alone: let h u_d represent h(d), and H maps all cosets as it must.
//! 2. For each generator g of G that is none of H, let d be the point of 1 in the orbit of g^-1(b) under H, and h in H map d
//!    to g^-1(b), so that z = g h maps d to b. For one point e of each orbit of H_d on D, u_{z(e)}^-1 z u_e lies in H. One e
//!    is d itself, so z u_d is in H, therefore z H_d z^-1 by 1, and z maps the cosets of the whole orbit of e as it must.
//!
//! The stabilizer of d in the next group after H is known first. With it, random elements of H_d generate H_d when they move
//! the base point of H over as many points as the quotient of the two orders says.
//!
//! Source: Sims' Verify routine, in Seress (2003), Permutation Group Algorithms, section 8.2.

use super::Clock;
use super::permutation::Orbits;
use super::schreier::{ChainLevel, ROOT, Random, StabilizerChain};
use crate::Result;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Images that coset representatives and generators of stabilizers may hold together.
const KEPT: usize = 1 << 25;

/// What is kept about the levels that are proved, and the one in question.
#[derive(Default)]
struct Proved {
    /// For each level the inverses of its coset representatives, if there is room.
    cosets: Vec<Option<Cosets>>,
    stabilizers: HashMap<u32, PointStabilizer>,
    /// The images held, and how many may be.
    kept: usize,
    room: usize,
    random: Random,
}

/// The inverses of the coset representatives of a level.
struct Cosets {
    rows: Vec<u16>,
    /// The row of each point of the orbit.
    place: Vec<u32>,
}

/// Generators of the stabilizer of a point in the group of a level: those of the chain at another level, and more.
struct PointStabilizer {
    level: usize,
    from: usize,
    more: Vec<Vec<u32>>,
    /// The length of the point's orbit.
    length: usize,
}

/// Orbits of a group, each as a tree.
struct Forest {
    /// For each point the element that led to it, plus one; zero outside, `ROOT` for the roots.
    via: Vec<u32>,
    roots: Vec<u32>,
    /// The root of each point.
    root: Vec<u32>,
    /// The points, tree after tree.
    points: Vec<u32>,
}

impl StabilizerChain {
    /// Proves the chain complete, adding what is missing.
    pub(super) fn prove(&mut self, clock: &mut Clock<'_>) -> Result<()> {
        self.prove_within(KEPT, clock)
    }

    fn prove_within(&mut self, room: usize, clock: &mut Clock<'_>) -> Result<()> {
        let mut proved = Proved { room, ..Proved::default() };
        let mut level = self.levels.len();
        while level > 0 {
            level -= 1;
            proved.keep_cosets(self, level, clock)?;
            if let Some((rest, failed)) = self.missing(level, &mut proved, clock)? {
                self.insert(rest, level + 1);
                proved.forget(level..=failed);
                level = (failed + 1).min(self.levels.len());
            }
        }
        Ok(())
    }

    /// An element of the stabilizer at a level that does not sift through the levels below, and where it stopped.
    fn missing(&self, level: usize, proved: &mut Proved, clock: &mut Clock<'_>) -> Result<Option<(Vec<u32>, usize)>> {
        let ChainLevel { point: base_point, generators, orbit, via, .. } = &self.levels[level];
        let below = self.generators_from(level + 1);
        // The stabilizers of later base points are the first to be known.
        let later = self.levels[level + 1..].iter().map(|later| later.point).filter(|&point| via[point as usize] != 0);
        let forest = self.forest(below, later.chain(orbit.iter().copied()), clock)?;
        let check = Check { chain: self, level, forest: &forest };

        for &root in forest.roots.iter().filter(|&root| root != base_point) {
            if proved.find_stabilizer(self, level + 1, root, clock)? {
                if proved.stabilizers[&root].generators(self).next().is_none() {
                    continue;
                }
                let representative = check.representative(root, proved, clock)?;
                for element in proved.stabilizers[&root].generators(self) {
                    if let Some(missing) = check.coset(&representative, element, proved, clock)? {
                        return Ok(Some(missing));
                    }
                }
                continue;
            }
            for &point in orbit.iter().filter(|&&point| forest.root[point as usize] == root) {
                let representative = check.representative(point, proved, clock)?;
                for &generator in below {
                    let element = &self.elements[generator as usize].images;
                    if let Some(missing) = check.coset(&representative, element, proved, clock)? {
                        return Ok(Some(missing));
                    }
                }
            }
        }

        let mut is_below = vec![false; self.elements.len()];
        below.iter().for_each(|&index| is_below[index as usize] = true);
        for &generator in generators.iter().filter(|&&index| !is_below[index as usize]) {
            let generator = &self.elements[generator as usize];
            let origin = generator.inverse[*base_point as usize];
            let mut z: Vec<u32> = (0..self.points as u32).collect();
            check.lead(&mut z, origin, clock)?;
            z.iter_mut().for_each(|image| *image = generator.images[*image as usize]);
            let mut orbits = Orbits::new(self.points);
            if let Some(stabilizer) = proved.stabilizers.get(&forest.root[origin as usize]) {
                for element in stabilizer.generators(self) {
                    orbits.join_images(orbit, element);
                    clock.spend(orbit.len())?;
                }
            }
            // What fixes the base point must be in H, no more.
            let points = if origin == *base_point { &orbit[..1] } else { &orbit[..] };
            for &point in points {
                if orbits.find(point) != point || check.has_no_quotient(point, &z, proved, clock)? {
                    continue;
                }
                let representative = check.representative(point, proved, clock)?;
                if let Some(missing) = check.coset(&representative, &z, proved, clock)? {
                    return Ok(Some(missing));
                }
            }
        }
        Ok(None)
    }

    /// The generators of the group of a level.
    fn generators_from(&self, level: usize) -> &[u32] {
        self.levels.get(level).map_or(&[], |level| &level.generators)
    }

    /// The orbits of the candidates under the group of some elements. The first candidate in each is its root.
    fn forest(
        &self,
        generators: &[u32],
        candidates: impl Iterator<Item = u32>,
        clock: &mut Clock<'_>,
    ) -> Result<Forest> {
        let (via, root) = (vec![0; self.points], vec![0; self.points]);
        let mut forest = Forest { via, roots: Vec::new(), root, points: Vec::new() };
        for candidate in candidates {
            if forest.via[candidate as usize] != 0 {
                continue;
            }
            forest.roots.push(candidate);
            let mut next = forest.points.len();
            forest.reach(candidate, ROOT, candidate);
            while let Some(&from) = forest.points.get(next) {
                next += 1;
                for &generator in generators {
                    let to = self.elements[generator as usize].images[from as usize];
                    if forest.via[to as usize] == 0 {
                        forest.reach(to, generator + 1, candidate);
                    }
                }
                clock.spend(generators.len())?;
            }
        }
        Ok(forest)
    }
}

impl Forest {
    fn reach(&mut self, point: u32, via: u32, root: u32) {
        self.via[point as usize] = via;
        self.root[point as usize] = root;
        self.points.push(point);
    }
}

/// The equations of one level.
struct Check<'c> {
    chain: &'c StabilizerChain,
    level: usize,
    forest: &'c Forest,
}

impl Check<'_> {
    /// Follows `images` by an element of H that maps the root of a point to the point.
    fn lead(&self, images: &mut [u32], mut point: u32, clock: &mut Clock<'_>) -> Result<()> {
        let mut path = Vec::new();
        while self.forest.via[point as usize] != ROOT {
            let element = &self.chain.elements[self.forest.via[point as usize] as usize - 1];
            path.push(element);
            point = element.inverse[point as usize];
        }
        for element in path.into_iter().rev() {
            images.iter_mut().for_each(|image| *image = element.images[*image as usize]);
            clock.spend(images.len())?;
        }
        Ok(())
    }

    /// The representative of the coset of a point: that of its root in the chain, then an element of H.
    fn representative(&self, point: u32, proved: &Proved, clock: &mut Clock<'_>) -> Result<Vec<u32>> {
        let mut back: Vec<u32> = (0..self.chain.points as u32).collect();
        proved.divide(self.chain, self.level, &mut back, self.forest.root[point as usize], clock)?;
        let mut images = vec![0; back.len()];
        (0..).zip(back).for_each(|(image, point)| images[point as usize] = image);
        self.lead(&mut images, point, clock)?;
        Ok(images)
    }

    /// Whether an element times the representative of a point is just another representative, where both are the chain's own.
    fn has_no_quotient(&self, point: u32, element: &[u32], proved: &Proved, clock: &mut Clock<'_>) -> Result<bool> {
        let to = element[point as usize];
        if [point, to].iter().any(|&point| self.forest.via[point as usize] != ROOT) {
            return Ok(false);
        }
        clock.spend(element.len())?;
        if let Some(cosets) = &proved.cosets[self.level] {
            let (from, to) = (cosets.back(point), cosets.back(to));
            return Ok(from.iter().zip(element).all(|(&from, &image)| to[image as usize] == from));
        }
        let mut back = |point| {
            let mut back: Vec<u32> = (0..element.len() as u32).collect();
            self.chain.divide(&self.chain.levels[self.level].via, &mut back, point, clock)?;
            Ok(back)
        };
        let (from, to) = (back(point)?, back(to)?);
        Ok(from.iter().zip(element).all(|(&from, &image)| to[image as usize] == from))
    }

    /// Checks that an element maps the coset of a representative to that of its point's image. The element of the
    /// stabilizer that says no, and the level at which its sifting stops.
    fn coset(
        &self,
        representative: &[u32],
        element: &[u32],
        proved: &Proved,
        clock: &mut Clock<'_>,
    ) -> Result<Option<(Vec<u32>, usize)>> {
        let mut rest: Vec<u32> = representative.iter().map(|&image| element[image as usize]).collect();
        let point = rest[self.chain.levels[self.level].point as usize];
        self.chain.divide(&self.forest.via, &mut rest, point, clock)?;
        proved.divide(self.chain, self.level, &mut rest, self.forest.root[point as usize], clock)?;
        let divide = |level: usize, rest: &mut [u32], image| proved.divide(self.chain, level, rest, image, clock);
        Ok(self.chain.sift_by(self.level + 1, &mut rest, divide)?.map(|failed| (rest, failed)))
    }
}

impl Cosets {
    /// The inverse of the representative that maps the base point to `point`.
    fn back(&self, point: u32) -> &[u16] {
        let n = self.place.len();
        &self.rows[self.place[point as usize] as usize * n..][..n]
    }
}

impl PointStabilizer {
    fn generators<'a>(&'a self, chain: &'a StabilizerChain) -> impl Iterator<Item = &'a [u32]> {
        let indices = chain.generators_from(self.from);
        indices
            .iter()
            .map(|&index| &chain.elements[index as usize].images[..])
            .chain(self.more.iter().map(|more| &more[..]))
    }
}

impl Proved {
    /// Keeps the coset representatives of a level, if there is room and numbers of 16 bits hold the points.
    fn keep_cosets(&mut self, chain: &StabilizerChain, level: usize, clock: &mut Clock<'_>) -> Result<()> {
        let ChainLevel { orbit, via, .. } = &chain.levels[level];
        let n = chain.points;
        self.cosets.resize_with(chain.levels.len(), || None);
        if n > 1 << 16 || orbit.len() * n > self.room - self.kept {
            return Ok(());
        }
        self.kept += orbit.len() * n;
        let (mut rows, mut place) = (vec![0; orbit.len() * n], vec![0; n]);
        for (index, &point) in orbit.iter().enumerate() {
            place[point as usize] = index as u32;
            let (done, row) = rows.split_at_mut(index * n);
            if index == 0 {
                row.iter_mut().zip(0..).take(n).for_each(|(image, point)| *image = point);
                continue;
            }
            let inverse = &chain.elements[via[point as usize] as usize - 1].inverse;
            let parent = &done[place[inverse[point as usize] as usize] as usize * n..][..n];
            row.iter_mut().zip(inverse).for_each(|(image, &before)| *image = parent[before as usize]);
            clock.spend(n)?;
        }
        self.cosets[level] = Some(Cosets { rows, place });
        Ok(())
    }

    /// Forgets what may change when elements are added to these levels.
    fn forget(&mut self, levels: RangeInclusive<usize>) {
        for (level, cosets) in self.cosets.iter_mut().enumerate() {
            if levels.contains(&level) {
                *cosets = None;
            }
        }
        self.stabilizers.clear();
        self.kept = self.cosets.iter().flatten().map(|cosets| cosets.rows.len()).sum();
    }

    /// Multiplies by the inverse of the coset representative that maps the base point of a level to `image`.
    fn divide(
        &self,
        chain: &StabilizerChain,
        level: usize,
        rest: &mut [u32],
        image: u32,
        clock: &mut Clock<'_>,
    ) -> Result<()> {
        if image == chain.levels[level].point {
            return Ok(());
        }
        let Some(cosets) = &self.cosets[level] else {
            return chain.divide(&chain.levels[level].via, rest, image, clock);
        };
        let row = cosets.back(image);
        rest.iter_mut().for_each(|point| *point = u32::from(row[*point as usize]));
        clock.spend(rest.len())
    }

    /// Finds generators of the stabilizer of a point in the group of a proved level. Whether there is room for them.
    fn find_stabilizer(
        &mut self,
        chain: &StabilizerChain,
        level: usize,
        point: u32,
        clock: &mut Clock<'_>,
    ) -> Result<bool> {
        let mut known = self.stabilizers.remove(&point);
        let mut from = level;
        let mut stabilizer = loop {
            let generators = chain.generators_from(from);
            clock.spend(generators.len())?;
            if generators.iter().all(|&index| chain.elements[index as usize].images[point as usize] == point) {
                break PointStabilizer { level: from, from, more: Vec::new(), length: 1 };
            }
            let ChainLevel { point: base_point, orbit, .. } = &chain.levels[from];
            if *base_point == point {
                break PointStabilizer { level: from, from: from + 1, more: Vec::new(), length: orbit.len() };
            }
            if let Some(known) = known.take_if(|known| known.level == from) {
                break known;
            }
            from += 1;
        };
        while stabilizer.level > level {
            if !self.extend(&mut stabilizer, chain, point, clock)? {
                self.kept -= stabilizer.more.len() * chain.points;
                return Ok(false);
            }
        }
        self.stabilizers.insert(point, stabilizer);
        Ok(true)
    }

    /// Makes the stabilizer of a point in the group of a level that of the level above. Whether there is room for it.
    fn extend(
        &mut self,
        stabilizer: &mut PointStabilizer,
        chain: &StabilizerChain,
        point: u32,
        clock: &mut Clock<'_>,
    ) -> Result<bool> {
        stabilizer.level -= 1;
        let ChainLevel { point: base_point, orbit, .. } = &chain.levels[stabilizer.level];
        let tree = chain.forest(chain.generators_from(stabilizer.level), [point].into_iter(), clock)?;
        let wanted = (orbit.len() * stabilizer.length / tree.points.len()) as u32;
        stabilizer.length = tree.points.len();
        let mut orbits = Orbits::new(chain.points);
        if wanted > 1 {
            for element in stabilizer.generators(chain) {
                orbits.join_images(orbit, element);
                clock.spend(orbit.len())?;
            }
        }
        while orbits.size(*base_point) < wanted {
            let element = self.random_element(chain, stabilizer.level, &tree, clock)?;
            let mut inside = |point: u32| orbits.find(point) == orbits.find(*base_point);
            if orbit.iter().all(|&point| !inside(point) || inside(element[point as usize])) {
                continue;
            }
            if self.kept + chain.points > self.room {
                return Ok(false);
            }
            self.kept += chain.points;
            orbits.join_images(orbit, &element);
            stabilizer.more.push(element);
        }
        Ok(true)
    }

    /// A uniform random element that fixes the root of a tree, in the group of a level whose orbit the tree spans.
    fn random_element(
        &mut self,
        chain: &StabilizerChain,
        level: usize,
        tree: &Forest,
        clock: &mut Clock<'_>,
    ) -> Result<Vec<u32>> {
        let mut element: Vec<u32> = (0..chain.points as u32).collect();
        for (index, ChainLevel { orbit, .. }) in chain.levels.iter().enumerate().skip(level) {
            let image = orbit[self.random.below(orbit.len())];
            self.divide(chain, index, &mut element, image, clock)?;
        }
        let image = element[tree.roots[0] as usize];
        chain.divide(&tree.via, &mut element, image, clock)?;
        Ok(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automorphism::Permutation;
    use crate::monitor::Silent;
    use num_bigint::BigUint;
    use proptest::prelude::*;
    use std::collections::HashSet;

    /// Room for everything, for a few representatives or generators, and for none.
    const ROOMS: [usize; 4] = [KEPT, 1500, 150, 0];

    fn with_clock<T>(work: impl FnOnce(&mut Clock<'_>) -> Result<T>) -> T {
        work(&mut Clock::new("the test", None, &mut Silent)).unwrap()
    }

    fn permutations(rows: &[Vec<u32>]) -> Vec<Permutation> {
        rows.iter().map(|row| Permutation::from_images(row).unwrap()).collect()
    }

    /// The chain by proof alone, from generators that are far from strong: every level fails many times.
    fn without_random_elements(points: usize, generators: &[Vec<u32>], room: usize) -> StabilizerChain {
        let mut chain = StabilizerChain::begin(points, &permutations(generators), None);
        with_clock(|clock| chain.prove_within(room, clock));
        chain
    }

    fn cycles(points: u32, cycles: &[&[u32]]) -> Vec<u32> {
        let mut images: Vec<u32> = (0..points).collect();
        for cycle in cycles {
            (0..cycle.len()).for_each(|i| images[cycle[i] as usize] = cycle[(i + 1) % cycle.len()]);
        }
        images
    }

    fn factorial(n: u32) -> BigUint {
        (1..=n).map(BigUint::from).product()
    }

    /// An exchange and a turn of the letters in the first place, an exchange and a turn of places.
    fn wreath(letters: u32, places: u32) -> Vec<Vec<u32>> {
        let n = letters * places;
        let first: Vec<u32> = (0..letters).collect();
        let mut exchange: Vec<u32> = (0..n).collect();
        exchange[..2 * letters as usize].rotate_left(letters as usize);
        let turn = (0..n).map(|point| (point + letters) % n).collect();
        vec![cycles(n, &[&[0, 1]]), cycles(n, &[&first]), exchange, turn]
    }

    /// Permutations of some letters, as they act on the pairs of letters.
    fn on_pairs(letters: u32, rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let pairs: Vec<(u32, u32)> = (0..letters).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        let place = |a: u32, b: u32| pairs.iter().position(|&pair| pair == (a.max(b), a.min(b))).unwrap() as u32;
        let image = |row: &Vec<u32>| pairs.iter().map(|&(a, b)| place(row[a as usize], row[b as usize])).collect();
        rows.iter().map(image).collect()
    }

    /// The group on several copies of its points side by side.
    fn copies(count: u32, rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
        let shifted =
            |row: &Vec<u32>, copy| row.iter().map(move |image| image + copy * row.len() as u32).collect::<Vec<_>>();
        rows.iter().map(|row| (0..count).flat_map(|copy| shifted(row, copy)).collect()).collect()
    }

    #[test]
    fn known_orders_are_proved_from_random_elements_and_without_them() {
        let symmetric = |n: u32| vec![cycles(n, &[&[0, 1]]), (0..n).map(|point| (point + 1) % n).collect()];
        let residue = |x: u32, image: u32| if x == 17 { x } else { image % 17 };
        let inverse = |x: u32| (1..17).find(|y| x * y % 17 == 1).unwrap_or(17 - x);
        let projective = vec![
            (0..18).map(|x| residue(x, x + 1)).collect(),
            (0..18).map(|x| residue(x, 3 * x)).collect(),
            (0..18).map(inverse).collect(),
        ];
        let known: Vec<(&str, Vec<Vec<u32>>, BigUint)> = vec![
            ("S3 wr S5", wreath(3, 5), factorial(3).pow(5) * factorial(5)),
            ("S5 wr S3", wreath(5, 3), factorial(5).pow(3) * factorial(3)),
            ("S2 wr S9", wreath(2, 9), BigUint::from(2u32).pow(9) * factorial(9)),
            ("S7 on pairs", on_pairs(7, &symmetric(7)), factorial(7)),
            ("S2 wr S4 on pairs", on_pairs(8, &wreath(2, 4)), BigUint::from(16 * 24u32)),
            ("S6, three times", copies(3, &symmetric(6)), factorial(6)),
            ("C30", vec![(0..30).map(|point| (point + 1) % 30).collect()], BigUint::from(30u32)),
            ("PGL(2, 17)", projective, BigUint::from(17 * (17 * 17 - 1u32))),
        ];
        for (name, rows, order) in known {
            let points = rows[0].len();
            let random = with_clock(|clock| StabilizerChain::new(points, &permutations(&rows), None, None, clock));
            assert_eq!(random.order(), order, "{name}");
            for room in ROOMS {
                assert_eq!(without_random_elements(points, &rows, room).order(), order, "{name} in {room}");
            }
        }
    }

    #[test]
    fn stabilizers_of_points_are_whole() {
        for rows in [wreath(3, 4), on_pairs(6, &wreath(1, 6)), copies(2, &wreath(2, 5))] {
            let points = rows[0].len();
            let chain = with_clock(|clock| StabilizerChain::new(points, &permutations(&rows), None, None, clock));
            let mut proved = Proved { room: KEPT, ..Proved::default() };
            for level in (0..chain.levels.len()).rev() {
                with_clock(|clock| proved.keep_cosets(&chain, level, clock));
                for point in 0..points as u32 {
                    assert!(with_clock(|clock| proved.find_stabilizer(&chain, level, point, clock)));
                    let stabilizer = &proved.stabilizers[&point];
                    let generators: Vec<Vec<u32>> = stabilizer.generators(&chain).map(<[u32]>::to_vec).collect();
                    assert!(generators.iter().all(|images| images[point as usize] == point));
                    let made = without_random_elements(points, &generators, KEPT);
                    let orders = chain.levels[level..].iter().map(|level| BigUint::from(level.orbit.len()));
                    assert_eq!(
                        made.order() * stabilizer.length,
                        orders.product::<BigUint>(),
                        "{point} in level {level}"
                    );
                }
            }
        }
    }

    fn some_permutations(points: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
        // Some points keep their place, so that small groups come often.
        let one =
            (Just((0..points as u32).collect::<Vec<_>>()).prop_shuffle(), 1..=points).prop_map(|(mut row, moved)| {
                let kept: Vec<u32> = (0..row.len() as u32).collect();
                row.retain(|&image| (image as usize) < moved);
                row.extend(&kept[moved..]);
                row
            });
        proptest::collection::vec(one, 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

        #[test]
        fn chains_hold_what_the_generators_reach(rows in (2usize..8).prop_flat_map(some_permutations)) {
            let points = rows[0].len();
            let identity: Vec<u32> = (0..points as u32).collect();
            let mut closure = HashSet::from([identity.clone()]);
            let mut queue = vec![identity];
            while let Some(element) = queue.pop() {
                for row in &rows {
                    let image: Vec<u32> = element.iter().map(|&point| row[point as usize]).collect();
                    if closure.insert(image.clone()) {
                        queue.push(image);
                    }
                }
            }
            let order = BigUint::from(closure.len());
            let random = with_clock(|clock| StabilizerChain::new(points, &permutations(&rows), None, None, clock));
            prop_assert_eq!(random.order(), order.clone());
            for room in [KEPT, 20, 0] {
                let chain = without_random_elements(points, &rows, room);
                prop_assert_eq!(chain.order(), order.clone());
                let exchange = cycles(points as u32, &[&[0, 1]]);
                prop_assert_eq!(with_clock(|clock| chain.contains(&exchange, clock)), closure.contains(&exchange));
                prop_assert!(with_clock(|clock| closure.iter().take(50).try_fold(true, |all, images| Ok(all & chain.contains(images, clock)?))));
            }
        }
    }
}
