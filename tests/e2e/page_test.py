#!/usr/bin/env python3
"""The status page in a real browser: a thousand invented containers, with hostile names among them."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

import chromium
import layout

sys.path.append(str(pathlib.Path(__file__).parents[1] / "support"))

from suite import run_suite  # noqa: E402

SERVER = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path("page_server")
PICTURES = os.environ.get("HOLDFAST_PICTURES")  # a directory to leave screenshots in, for people
TAB, ENTER, ESCAPE, DOWN, END, SPACE = ("Tab", 9), ("Enter", 13), ("Escape", 27), ("ArrowDown", 40), ("End", 35), (" ", 32)
CONTAINERS = 1000
FIRST = 50  # rows shown at once
ROWS = "document.querySelectorAll('tr.row').length"
VISIBLE = "document.querySelectorAll('tr.row:not([hidden])').length"
FOCUSED = "document.activeElement"


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        if reason := chromium.why_not():
            raise unittest.SkipTest(reason)
        cls.server = subprocess.Popen([SERVER, str(CONTAINERS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        cls.address = "http://" + cls.server.stdout.readline().strip()
        cls.browser = chromium.Browser()

    @classmethod
    def tearDownClass(cls) -> None:
        if hasattr(cls, "browser"):
            cls.browser.close()
            cls.server.communicate("quit\n", timeout=20)

    def setUp(self) -> None:
        self.browser.complaints.clear()
        self.browser.media("light")
        self.browser.width(1280)
        self.open("usual", CONTAINERS)

    def open(self, scene: str, containers: int) -> None:
        self.say(scene)
        self.browser.go(self.address + "/")
        self.browser.wait(f"{ROWS} === {containers}")
        self.browser.wait("document.getElementById('contact').dataset.live === 'yes'")

    def tearDown(self) -> None:
        self.assertEqual(self.browser.complaints, [], "the browser complains, of an error or of a breach of the policy")

    def say(self, command: str) -> None:
        self.server.stdin.write(command + "\n")
        self.server.stdin.flush()
        self.assertEqual(self.server.stdout.readline(), "done\n")

    def text(self, selector: str) -> str:
        return self.browser.run(f"document.querySelector({selector!r}).textContent")

    def press(self, key: tuple[str, int], times: int = 1) -> None:
        for _ in range(times):
            self.browser.press(*key, text={"Enter": "\r", " ": " "}.get(key[0], ""))

    def tab_to(self, condition: str, most: int = 40) -> int:
        """With Tab alone; how often it was pressed. The element must show that it has the focus."""
        for count in range(1, most + 1):
            self.press(TAB)
            if self.browser.run(f"{FOCUSED}.matches({condition!r})"):
                outline = self.browser.run(f"getComputedStyle({FOCUSED}).outlineStyle")
                self.assertNotEqual(outline, "none", f"{condition} has the focus and does not show it")
                return count
        self.fail(f"Tab never comes to {condition}")

    def picture(self, name: str) -> None:
        if PICTURES:
            self.browser.picture(os.path.join(PICTURES, name + ".png"))

    def test_shows_the_verdict_and_every_container(self) -> None:
        self.assertEqual(self.text("#headline"), "trainer-1/worker-13 lost the right to open /dev/nvidia5, /dev/nvidiactl")
        self.assertEqual(self.text("#verdict-because"), "its device rules were rewritten by runc · HF-101")
        self.assertIn("8 more containers lack something, 16 at risk, 775 fine, 200 ask for nothing", self.text("#verdict-rest"))
        self.assertEqual(self.browser.run("document.getElementById('verdict').dataset.level"), "bad")
        self.assertIn("tracepoints", self.text("#tiers"))
        self.assertIn("fentry", self.text("#tiers-why"))
        self.assertEqual(self.text("#shown"), "1000 containers")
        heads = self.browser.run("[...document.querySelectorAll('#table-head th')].map((it) => it.textContent)")
        self.assertEqual(heads[:4], ["Container", "State", "Devices", "Findings"])
        first = self.browser.run("document.querySelector('tr.row').innerText")
        self.assertIn("lost", first)
        self.assertIn("nvidia 5 lost", first)
        self.picture("light")

    def test_has_the_cure_and_the_findings_before_the_containers(self) -> None:
        self.browser.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
        self.browser.run("document.querySelector('#verdict-cure .copy').click()")
        self.browser.wait("window.copied")
        self.assertEqual(self.browser.run("window.copied"), "holdfast heal trainer-1/worker-13")
        order = self.browser.run("[...document.querySelectorAll('main > section')].map((it) => it.id)")
        self.assertEqual(order[:4], ["verdict", "findings", "containers", "timeline"])

    def test_says_whether_one_cure_is_enough(self) -> None:
        relations = "[...document.querySelectorAll('#findings-list > li:first-child .relation')].map((it) => it.textContent)"
        self.open("trouble", 7)
        self.assertEqual(self.browser.run(relations), ["either", "or"])
        self.assertEqual(self.text("#verdict-cure .others"), "another way")
        self.assertFalse(self.browser.run("!!document.querySelector('#verdict-cure .relation')"))
        self.assertFalse(self.browser.run("!!document.querySelector('#findings-list > li:nth-child(2) .relation')"), "it has one cure")
        self.open("steps", 7)
        self.assertEqual(self.browser.run(relations), ["first", "then"])
        self.assertEqual(self.text("#verdict-cure .relation"), "first")
        self.assertEqual(self.text("#verdict-cure .others"), "then one more step")
        self.browser.width(390)
        self.browser.run("document.querySelectorAll('#timeline-list details').forEach((it) => { it.open = true; })")
        self.browser.run("new Promise((done) => setTimeout(done, 200))")
        self.assertEqual(layout.problems(self.browser), [])

    def test_codes_lead_to_their_pages(self) -> None:
        target = self.browser.run("document.querySelector('#findings-list a.code').href")
        self.assertEqual(target, self.address + "/findings/HF-101")
        self.browser.go(target)
        self.browser.wait("document.querySelector('h1')?.textContent === 'HF-101 A container lost a right it had'")
        for width in (390, 1280):
            self.browser.width(width)
            self.assertEqual(layout.problems(self.browser), [], width)
        self.assertTrue(self.browser.run("getComputedStyle(document.querySelector('.prose')).borderRadius !== '0px'"), "it has its style")

    def test_folds_containers_that_ask_for_nothing(self) -> None:
        self.assertEqual(self.browser.run(VISIBLE), FIRST)
        self.assertEqual(self.text("#show-others"), "199 containers ask for no device")
        self.assertEqual(self.text("#show-more"), "Show 751 more")
        self.browser.run("document.getElementById('show-more').click()")
        self.assertEqual(self.browser.run(VISIBLE), 801)
        self.browser.run("document.getElementById('show-others').click()")
        self.assertEqual(self.browser.run(VISIBLE), CONTAINERS)
        self.browser.run("document.getElementById('show-others').click()")
        self.assertEqual(self.browser.run(VISIBLE), 801)

    def test_numbers_stand_below_their_heads(self) -> None:
        self.open("trouble", 7)
        for key, cell in (("losses", "tr.row td.number"), ("heals", "tr.row td.number + td.number")):
            edges = self.browser.run(f"""[document.querySelector('th[data-key={key}] .sort'), document.querySelector('{cell} span')].map((it) => {{
              const range = document.createRange(); range.selectNodeContents(it); return range.getBoundingClientRect().right; }})""")
            self.assertAlmostEqual(edges[0], edges[1], delta=1, msg=key)
        self.assertEqual(self.browser.run("document.querySelectorAll('#units th.number').length"), 2)
        self.assertEqual(self.browser.run("getComputedStyle(document.querySelector('#units-body td.number')).textAlign"), "right")

    def test_an_opened_row_has_all_about_its_container(self) -> None:
        self.open("trouble", 7)
        self.browser.run("document.querySelector('tr.row').click()")  # anywhere in the row
        text = self.text("tr.detail")
        self.assertIn("lost the right to open /dev/nvidia0", text)
        self.assertIn("holdfast blame llama-train-0/main", text)
        self.assertIn("attach by runc (pid 812)", text)
        self.assertIn("and 35 earlier ones", text)
        fact = "[...document.querySelectorAll('tr.detail dt')].find((it) => it.textContent === 'Id').nextSibling"
        self.assertRegex(self.browser.run(f"{fact}.textContent"), "^[0-9a-f]{12}…$")
        self.assertRegex(self.browser.run(f"{fact}.title"), "^[0-9a-f]{64}$")
        self.browser.run("document.querySelector('tr.row').click()")
        self.assertFalse(self.browser.run("!!document.querySelector('tr.detail')"))

    def test_the_timeline_has_ranges_filters_and_bars(self) -> None:
        self.open("trouble", 7)
        entries = "document.querySelectorAll('#timeline-list > li').length"
        choose = "[...document.querySelectorAll('#range button')].find((it) => it.textContent === '%s').click()"
        self.assertEqual(self.browser.run(entries), 8)
        self.assertIn("5 losses (2 not given back) and 3 changes kept open by the shield in the last 24 hours", self.text("#bars"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.bars .lost').length"), 2)
        self.assertEqual(self.browser.run("document.querySelectorAll('.bars .restored').length"), 3)
        self.assertEqual(self.browser.run("document.querySelectorAll('.bars .held').length"), 3)
        self.browser.run(choose % "1 h")
        self.assertEqual(self.browser.run(entries), 1)
        self.browser.run(choose % "7 d")
        self.assertEqual(self.browser.run(entries), 20)
        self.assertEqual(self.text("#timeline-more"), "Show 20 earlier changes")
        self.browser.run("document.getElementById('timeline-more').click()")
        self.assertEqual(self.browser.run(entries), 40)
        self.assertIn("27 losses", self.text("#bars"))
        self.choose("timeline-writer", "systemd")
        self.assertEqual(self.browser.run(entries), 13)
        self.assertIn("0 losses and 13 changes", self.text("#bars"))
        self.choose("timeline-writer", "")
        self.choose("timeline-container", "llama-train-0/main")
        self.assertEqual(self.browser.run(entries), 40)
        self.assertRegex(self.text("#timeline-list time"), r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$")

    def choose(self, select: str, value: str) -> None:
        self.browser.run(f"(() => {{ const it = document.getElementById({select!r}); it.value = {value!r}; it.dispatchEvent(new Event('change')); }})()")

    def test_menu_and_headings_have_the_same_names(self) -> None:
        self.open("calm", 7)
        for name, section in self.browser.run("[...document.querySelectorAll('nav a')].map((it) => [it.textContent, it.getAttribute('href')])"):
            self.assertEqual(self.text(f"{section} h2"), name)

    def test_says_that_all_is_fine_only_without_findings(self) -> None:
        self.open("calm", 7)
        self.assertEqual(self.text("#headline"), "All is fine")
        self.assertEqual(self.browser.run("document.getElementById('verdict').dataset.level"), "good")
        self.assertTrue(self.browser.run("document.getElementById('verdict-cure').hidden"))
        self.assertEqual(self.browser.run("document.querySelector('th[data-key=findings]').checkVisibility()"), False)

    def test_nothing_is_cut_off_and_nothing_overlaps(self) -> None:
        for scene, containers in (("calm", 7), ("trouble", 7), ("usual", CONTAINERS)):
            for width in (390, 1280):
                for scheme in ("light", "dark"):
                    with self.subTest(scene=scene, width=width, scheme=scheme):
                        self.browser.media(scheme)
                        self.browser.width(width)
                        self.open(scene, containers)
                        if scene == "trouble":
                            self.browser.run("document.querySelector('tr.row').click()")
                        self.browser.run("document.querySelectorAll('#timeline-list details').forEach((it) => { it.open = true; })")
                        self.browser.run("new Promise((done) => setTimeout(done, 200))")  # the hints follow the sizes
                        self.assertEqual(layout.problems(self.browser), [])
                        self.assertEqual(self.too_faint(), [])
                        self.whole_picture(f"{scene}-{scheme}-{width}", width)

    def whole_picture(self, name: str, width: int) -> None:
        if PICTURES:
            self.browser.width(width, min(4200, self.browser.run("document.documentElement.scrollHeight")))
            self.picture(name)

    def test_the_check_of_the_layout_can_fail(self) -> None:
        broken = {
            "cut off: h1#headline": ("#headline { white-space: nowrap; overflow: hidden; }",),
            "on each other: h1#headline": ("#verdict-because { margin-top: -40px; }",),
            "outside of the page": ("#headline { white-space: nowrap; }",),
            "scrolls without a hint: div.scroll": (".hint { display: none; }",),
            "a scroll box in the page: ol#timeline-list": ("#timeline-list { max-height: 5rem; overflow: auto; }",),
            "the menu has several lines": ("nav { flex-wrap: wrap; font-size: 1.4rem !important; }",),
            "the page is": ("#findings { width: 900px; }",),
        }
        for problem, rules in broken.items():
            with self.subTest(problem=problem):
                self.browser.width(390)
                self.open("trouble", 7)
                for rule in rules:
                    self.browser.run(f"document.styleSheets[1].insertRule({rule!r}, document.styleSheets[1].cssRules.length)")
                found = layout.problems(self.browser)
                self.assertTrue(any(one.startswith(problem) for one in found), found)

    def test_shows_devices_cpus_findings_and_the_past(self) -> None:
        units = self.text("#units-body")
        self.assertIn("NVIDIA H200", units)
        self.assertIn("bad: Xid 79: fallen off the bus", units)
        self.assertIn("kept from kubelet: /dev/nvidia-uvm is missing", units)
        self.assertIn("kubelet is offered nvidia.com/gpu: 7 of 8 healthy, 12 allocations, 0 refused", self.text("#drivers"))
        self.assertIn("and 96 more", units)
        self.assertIn("64 CPUs online (0-63), 32 of them", self.text("#cpus-text"))
        self.assertEqual(self.browser.run("document.querySelectorAll('.cpu.taken').length"), 32)
        self.assertIn("16-19", self.text("#cpus-body"))
        self.assertEqual(self.browser.run("document.querySelectorAll('#findings-list > li').length"), 3)
        self.assertIn("holdfast heal trainer-1/worker-13", self.text("#findings-list"))
        self.assertGreaterEqual(self.browser.run("document.querySelectorAll('#timeline-list > li').length"), 12)
        self.assertIn("runc (pid 812), containerd-shim, containerd, for kubelet", self.text("#timeline-list"))

    def test_filters_by_text_and_by_problems(self) -> None:
        self.browser.press("/", text="/")
        self.assertEqual(self.browser.run(f"{FOCUSED}.id"), "filter")
        self.browser.type("worker-77 docker")
        self.assertEqual(self.browser.run(VISIBLE), 3)  # 771, 774 and 777
        self.assertEqual(self.text("#shown"), "3 of 1000 containers")
        self.browser.type("nonsense")
        self.assertEqual(self.browser.run(VISIBLE), 0)
        self.assertFalse(self.browser.run("document.getElementById('nothing').hidden"))
        self.press(ESCAPE)
        self.assertEqual(self.browser.run(VISIBLE), FIRST)
        self.tab_to("#only-problems")
        self.press(SPACE)
        self.assertEqual(self.browser.run(VISIBLE), 27)
        # It has all that it is owed, and a finding; another one runs without what it asks for.
        worker = "[...document.querySelectorAll('tr.row:not([hidden])')].find((it) => it.innerText.startsWith('worker-12'))"
        self.assertIn("HF-118", self.browser.run(f"{worker}.innerText"))
        self.assertTrue(self.browser.run("[...document.querySelectorAll('tr.row:not([hidden])')].some((it) => it.innerText.includes('HF-125'))"))

    def test_sorts_by_the_heads_of_columns(self) -> None:
        self.browser.run("document.querySelector('th[data-key=losses] .sort').focus()")
        self.press(ENTER, 2)
        self.assertEqual(self.browser.run("document.querySelector('th[data-key=losses]').ariaSort"), "descending")
        self.assertEqual(self.browser.run("document.querySelector('tr.row td.number').textContent"), "6")
        self.assertEqual(self.browser.run("document.querySelectorAll('th[aria-sort]').length"), 1)

    def test_calls_dockers_namespace_docker(self) -> None:
        head = "document.querySelector('th[data-key=namespace]')"
        at = f"[...{head}.parentNode.children].indexOf({head})"
        shown = self.browser.run(f"[...new Set([...document.querySelectorAll('tr.row')].map((row) => row.children[{at}].textContent))].sort().join(' ')")
        self.assertIn("docker", shown.split())
        self.assertNotIn("moby", shown.split())

    def test_works_with_the_keyboard_alone(self) -> None:
        self.press(TAB)
        self.assertEqual(self.browser.run(f"{FOCUSED}.className"), "skip")
        self.tab_to("nav a")
        self.tab_to("#verdict-cure .copy")
        self.press(ENTER)
        self.browser.wait(f"{FOCUSED}.textContent !== 'Copy'")
        self.tab_to("#findings-list .copy")
        self.tab_to("#filter")
        self.tab_to(".sort")
        self.tab_to(".open")
        first = self.browser.run(f"{FOCUSED}.textContent")
        self.press(DOWN)
        self.assertNotEqual(self.browser.run(f"{FOCUSED}.textContent"), first)
        self.press(ENTER)
        self.assertEqual(self.browser.run(f"{FOCUSED}.ariaExpanded"), "true")
        self.assertIn("cgroup-denies", self.text("tr.detail"))
        self.assertIn("Hardened in systemd", self.text("tr.detail"))
        self.press(ENTER)
        self.assertFalse(self.browser.run("!!document.querySelector('tr.detail')"))
        self.press(END)
        self.assertTrue(self.browser.run(f"{FOCUSED}.closest('tr') === [...document.querySelectorAll('tr.row:not([hidden])')].at(-1)"))
        # The rows are one stop for Tab: the rest of the page is near.
        self.assertLess(self.tab_to("#timeline-container", 20), 10)

    def test_shows_a_loss_as_it_happens_and_says_so(self) -> None:
        self.browser.run("document.querySelector('#filter').focus()")
        self.browser.run("window.kept = document.querySelectorAll('tr.row')[500]")
        begin = time.monotonic()
        self.say("loss")
        self.browser.wait("document.querySelector('#timeline-list li.new')?.textContent.includes('<i>worker-5</i>')")
        self.assertLess(time.monotonic() - begin, 2)
        self.browser.wait("document.getElementById('verdict-rest').textContent.startsWith('9 more containers lack something')")
        self.browser.wait("document.getElementById('announce').textContent.includes('<i>worker-5</i> lost /dev/nvidia0')")
        self.assertTrue(self.browser.run("document.contains(window.kept)"), "rows are kept, not recreated")
        self.assertEqual(self.browser.run(f"{FOCUSED}.id"), "filter")

    def test_says_when_it_is_blind(self) -> None:
        self.say("blind")
        self.browser.wait("document.getElementById('headline').textContent.startsWith('Blind')", 15)
        self.assertEqual(self.text("#verdict-because"), "read /proc: Permission denied")

    def test_survives_a_storm(self) -> None:
        self.say("storm 3000")
        self.browser.wait("document.querySelector('#timeline-list').textContent.includes('stormy')")
        self.browser.run("document.getElementById('timeline-more').click()")
        self.browser.wait("document.querySelectorAll('#timeline-list > li').length === 200")
        self.assertIn("holdfast blame has all of them", self.text("#timeline-note"))
        self.assertLess(self.browser.run("(async () => { const begin = performance.now();"
                                         "await new Promise(requestAnimationFrame); return performance.now() - begin; })()"), 1000)

    def test_shows_the_records_of_a_daemon_that_counts_anew(self) -> None:
        """A restart without the journal of the last one: its numbers are lower than those that the page has seen."""
        address = "127.0.0.1:0"
        for start in range(2):
            server = self.enterContext(subprocess.Popen([SERVER, "20", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            self.addCleanup(server.kill)
            address = server.stdout.readline().strip()
            if start == 0:
                self.browser.go(f"http://{address}/")
                self.browser.wait(f"{ROWS} === 20")
                self.browser.wait("document.getElementById('contact').dataset.live === 'yes'")
                server.stdin.write("storm 30\n")
                server.stdin.flush()
                self.browser.wait("document.querySelector('#timeline-list').textContent.includes('stormy')")
                server.kill()
                self.browser.wait("document.getElementById('contact').dataset.live === 'no'", 30)
        server.stdin.write("loss\nusual\n")
        server.stdin.flush()
        self.browser.wait("document.querySelector('#timeline-list').textContent.includes('<i>worker-5</i>')", 30)
        self.assertNotIn("stormy", self.text("#timeline-list"), "nothing is left of the other daemon")
        self.browser.wait("document.getElementById('contact').dataset.live === 'yes'", 30)
        server.stdin.write("storm 1\n")
        server.stdin.flush()
        self.browser.wait("document.querySelector('#timeline-list').textContent.includes('stormy')")
        self.open("usual", CONTAINERS)
        self.browser.complaints.clear()  # that there was no server

    def test_shows_hostile_names_as_text(self) -> None:
        body = self.text("#table-body")
        self.assertIn("<img src=x onerror=alert(1)>", body)
        self.assertIn("<script>document.title='owned'</script>", body)
        self.assertIn("�� broken bytes", body)
        self.assertNotIn("owned", self.browser.run("document.title"))
        self.assertEqual(self.browser.run("document.querySelectorAll('main img:not(#cpus-picture), main script, #findings-list b').length"), 0)
        self.assertIn("<b>bold</b>", self.text("#findings-list"))

    def test_may_not_run_scripts_of_others(self) -> None:
        blocked = self.browser.run(
            "new Promise((done) => { document.addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective));"
            "const script = document.createElement('script'); script.textContent = 'window.ran = 1'; document.body.append(script); })")
        self.assertTrue(blocked.startswith("script-src"), blocked)
        self.assertIsNone(self.browser.run("window.ran"))
        self.browser.run("1")
        self.browser.complaints.clear()  # this one was ours

    def test_is_dark_and_light_and_legible_in_both(self) -> None:
        for scheme in ("light", "dark"):
            self.browser.media(scheme)
            self.assertEqual(self.too_faint(), [], scheme)
            ground = self.browser.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
            self.assertEqual(sum(ground) > 384, scheme == "light")
            self.picture(scheme)

    def too_faint(self) -> list[str]:
        """Texts with a contrast below 4.5 (WCAG AA) against what is painted behind them."""
        return self.browser.run("""(() => {
          const parts = (text) => text.match(/[\\d.]+/g).map(Number);
          const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
          const ground = (it) => { for (; it; it = it.parentElement) { const c = parts(getComputedStyle(it).backgroundColor);
            if (c.length < 4 || c[3] > 0) { return c; } } return [255, 255, 255]; };
          const faint = new Set();
          for (const it of [...document.querySelectorAll('h1,h2,h3,p,dt,dd,code,a,label,th,summary,.cpu,.state,.copy')].slice(0, 3000)) {
            const [a, b] = [light(parts(getComputedStyle(it).color)), light(ground(it))].sort((x, y) => y - x);
            if ((a + .05) / (b + .05) < 4.5) { faint.add(it.tagName + '.' + it.className); } }
          return [...faint]; })()""")

    def test_has_landmarks_headings_and_heads_of_tables(self) -> None:
        for selector in ("header", "nav[aria-label]", "main", "footer", "h1", "[aria-live=polite]", "html[lang]"):
            self.assertTrue(self.browser.run(f"!!document.querySelector({selector!r})"), selector)
        self.assertEqual(self.browser.run("document.querySelectorAll('section:not([aria-labelledby])').length"), 0)
        self.assertEqual(self.browser.run("document.querySelectorAll('th:not([scope])').length"), 0)
        unnamed = "[...document.querySelectorAll('button, input')].filter((it) => !it.textContent && !it.labels?.length && !it.ariaLabel)"
        self.assertEqual(self.browser.run(unnamed + ".length"), 0)
        levels = self.browser.run("[...document.querySelectorAll('h1,h2,h3')].map((it) => Number(it.tagName[1]))")
        self.assertTrue(all(after - before <= 1 for before, after in zip(levels, levels[1:])), levels)

    def test_fits_narrow_screens(self) -> None:
        self.browser.width(360)
        self.assertLessEqual(self.browser.run("document.documentElement.scrollWidth"), 360)
        self.picture("narrow")

    def test_respects_reduced_motion(self) -> None:
        self.browser.media("light", "reduce")
        self.say("loss")
        self.browser.wait("!!document.querySelector('#timeline-list li.new')")
        self.assertEqual(self.browser.run("document.getAnimations().length"), 0)

    def test_is_fast_with_a_thousand_containers(self) -> None:
        drawn = self.browser.run("performance.getEntriesByName('first picture')[0].duration")
        self.assertLess(drawn, 1500, "milliseconds to build the page from a snapshot")
        filtered = self.browser.run("""(() => { const begin = performance.now(); const box = document.getElementById('filter');
          box.value = 'worker-7'; box.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - begin; })()""")
        self.assertLess(filtered, 500)
        print(f"page: first picture in {drawn:.0f} ms, filtered in {filtered:.0f} ms", file=sys.stderr)


if __name__ == "__main__":
    run_suite()
