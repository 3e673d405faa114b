// How Sphinx's search ranks what it finds: pages whose title has all words, headings that have them, names of the
// API, text; decisions and changes, which have most words, at the end.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  words: (text) => text.toLowerCase().split(/[^\p{Letter}\p{Number}_]+/u).filter(Boolean),
  // From 0 to 1: the share of a heading that the query is, and the share of words as they are typed; 0 without one.
  share: (heading) => {
    const stem = (word) => new Stemmer().stemWord(word), asked = Scorer.words(Scorer.query), all = Scorer.words(heading);
    const stems = all.map(stem);
    if (!asked.length || !asked.every((word) => stems.includes(stem(word)))) return 0;
    return (asked.length / all.length + asked.filter((word) => all.includes(word)).length / asked.length) / 2;
  },
  // The best heading of a page: [share, heading, address].
  heading: (page) => {
    if (!Scorer.headings) {
      Scorer.headings = {};
      for (const [heading, places] of Object.entries(Search._index.alltitles)) {
        const share = Scorer.share(heading);
        for (const [file, address] of share ? places : []) {
          const name = Search._index.docnames[file];
          if (address && share > (Scorer.headings[name]?.[0] ?? 0)) Scorer.headings[name] = [share, heading, address];
        }
      }
    }
    return Scorer.headings[page];
  },
  score: (result) => {
    const [page, title, anchor, , score, , kind] = result;
    Scorer.query ??= new URLSearchParams(window.location.search).get("q");
    const name = Search._index.titles[Search._index.docnames.indexOf(page)], whole = Scorer.share(name);
    if (whole && title === name) return 300 + 99 * whole;
    const best = Scorer.heading(page);
    if (kind === "text" && best) [result[1], result[2]] = [`${name} > ${best[1]}`, `#${best[2]}`];
    if (kind === "title" || (kind === "text" && best)) return 200 + 99 * (best?.[0] ?? 0);
    if (kind === "object") return 150 + score;
    return (/^decisions\/|^changelog$/.test(page) ? 50 : 100) + score;
  },
};
