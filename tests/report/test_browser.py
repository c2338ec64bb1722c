"""The report in a browser: it draws, its controls work, it prints, and it asks nothing of any network."""

import base64
import io
import json
import shutil

import numpy as np
import pytest
from matplotlib.image import imread
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from latentviews import MultiViewMixture
from latentviews.datasets import make_multiview
from latentviews.report import write_report

pytestmark = pytest.mark.browser

NAMES = ("</script><script>document.title='owned'</script>", "<img src=x onerror=\"document.title='owned'\">", "mass")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
PATIENCE = 120  # seconds, for a machine that is busy with other things


@pytest.fixture(scope="module")
def data():
    return make_multiview(1200, 3, design="gamma", random_state=0)


@pytest.fixture(scope="module")
def report(data, tmp_path_factory):
    model = MultiViewMixture(3, random_state=0).fit(data.X)
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(model, data.X, path, columns=NAMES, source=NAMES[0], title="A <b>title</b>")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver") or "chromedriver")
    driver = webdriver.Chrome(options=options, service=service)
    driver.get("about:blank")  # in place of a first tab, which is a page of the browser's own
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver, report):
    """The report, opened anew in a wide light window."""
    show(driver, 1200, "light")
    for kind in ("browser", "performance"):
        driver.get_log(kind)  # and so empties it: what follows is of the report
    driver.get(report.as_uri())
    caption = driver.find_element(By.ID, "scatter-text")
    WebDriverWait(driver, PATIENCE).until(lambda _: caption.text)
    yield driver
    assert driver.get_log("browser") == []  # no error, no warning, whatever was done
    assert driver.title == "A <b>title</b>"  # and no name became a script


def show(driver, width, scheme, height=900):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def pixels(element):
    """The picture of an element, all of it, (height, width, 3) from 0 to 255."""
    driver = element.parent
    driver.execute_script("scrollTo(0, 0)")
    place = driver.execute_script(
        "const {x, y, width, height} = arguments[0].getBoundingClientRect();return {x, y, width, height, scale: 1}",
        element,
    )
    picture = driver.execute_cdp_cmd("Page.captureScreenshot", {"clip": place, "captureBeyondViewport": True})
    return np.round(255 * imread(io.BytesIO(base64.b64decode(picture["data"])))[:, :, :3])


def class_colours(browser):
    script = "return [0,1,2].map(i => getComputedStyle(document.documentElement).getPropertyValue('--p' + i))"
    return [np.array([int(c.strip()[i : i + 2], 16) for i in (1, 3, 5)]) for c in browser.execute_script(script)]


def share(picture, colour, back=(255, 255, 255)):
    """The share of a picture on the line between a colour, at half strength or more, and what is behind it."""
    return np.mean(strength(picture, colour, back) > 0.5)


def strength(picture, colour, back=(255, 255, 255)):
    toward = np.asarray(colour, dtype=float) - back
    amount = (picture - back) @ toward / (toward @ toward)
    rest = np.linalg.norm(picture - back - amount[..., None] * toward, axis=-1)
    return np.where(rest < 25, amount, 0.0)


def scatter(browser):
    return browser.find_element(By.ID, "scatter")


def test_nothing_is_asked_of_any_network(browser, report):
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    # pages of the browser's own (chrome:, chrome-untrusted:) may ask for their parts at any time
    by_report = {request["request"]["url"] for request in asked if not request["documentURL"].startswith("chrome")}
    assert by_report == {report.as_uri()}
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_names_are_shown_as_they_are(browser):
    assert browser.find_element(By.TAG_NAME, "h1").text == "A <b>title</b>"
    assert [option.text for option in Select(browser.find_element(By.ID, "x")).options] == list(NAMES)
    assert browser.execute_script("return document.querySelectorAll('img').length") == 0


def test_every_class_is_drawn_where_its_rows_are(browser, data):
    Select(browser.find_element(By.ID, "x")).select_by_index(0)
    Select(browser.find_element(By.ID, "y")).select_by_index(2)
    described = json.loads(browser.execute_script("return document.getElementById('data').textContent"))
    picture = pixels(scatter(browser))
    height, width = picture.shape[:2]
    order = np.argsort(-np.bincount(data.y))  # classes are named by size
    for h, colour in enumerate(class_colours(browser)):
        rows, columns = np.nonzero(strength(picture, colour) > 0.5)
        inside = (columns > 62) & (rows < height - 48)
        found = np.median(columns[inside]), np.median(rows[inside])
        middle = np.median(data.X[data.y == order[h]][:, [0, 2]], axis=0)
        x, y = ((v - low) / (high - low) for v, (low, high) in zip(middle, _limits(described, 0, 2), strict=True))
        expected = 62 + x * (width - 74), 8 + (1 - y) * (height - 56)
        # rows drawn over each other count once, so that tails weigh more: a twentieth of the picture
        np.testing.assert_allclose(found, expected, atol=0.05 * width)


def _limits(described, *columns):
    return [described["columns"][c]["limits"] for c in columns]


def test_choosing_an_axis_draws_and_describes_anew(browser):
    before = pixels(scatter(browser))
    chosen = Select(browser.find_element(By.ID, "x"))
    now = next(i for i in range(3) if i not in {_value(browser, "x"), _value(browser, "y")})
    chosen.select_by_index(now)
    assert np.mean(pixels(scatter(browser)) != before) > 0.005
    assert NAMES[now] in browser.find_element(By.ID, "scatter-text").text
    assert NAMES[now] in scatter(browser).get_attribute("aria-label")


def _value(browser, key):
    return int(browser.find_element(By.ID, key).get_attribute("value"))


@pytest.mark.parametrize("how", [1, 2])
def test_rows_are_also_drawn_as_density_and_by_certainty(browser, how):
    before = pixels(scatter(browser))
    Select(browser.find_element(By.ID, "how")).select_by_index(how)
    after = pixels(scatter(browser))
    assert np.mean(after != before) > 0.005
    assert np.mean(after < 250) > 0.01


def test_a_hidden_class_is_drawn_nowhere_and_comes_back(browser):
    colour, box = class_colours(browser)[1], browser.find_element(By.CSS_SELECTOR, "input[data-class='1']")
    parts = browser.find_elements(By.CSS_SELECTOR, "svg .part.h1")
    shown = share(pixels(scatter(browser)), colour)
    assert shown > 0.002
    assert all(part.is_displayed() for part in parts)
    assert len(parts) == 6  # a curve and its number in each of three views

    box.send_keys(Keys.SPACE)  # the keyboard does what the mouse does
    assert share(pixels(scatter(browser)), colour) < shown / 20
    assert not any(part.is_displayed() for part in parts)
    assert "class 0, 2 only" in browser.find_element(By.ID, "scatter-text").text

    browser.find_element(By.ID, "all").click()
    assert share(pixels(scatter(browser)), colour) == pytest.approx(shown, rel=0.01)
    assert all(part.is_displayed() for part in parts)


def test_controls_are_reached_with_the_keyboard(browser):
    browser.execute_script("document.querySelector('.skip').focus()")  # the first of all
    reached = set()
    for _ in range(24):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        active = browser.switch_to.active_element
        reached.add(active.get_attribute("id") or active.get_attribute("data-class") or active.tag_name)
    assert {"0", "1", "2", "all", "x", "y", "how", "summary"} <= reached


@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (400, "light")])
def test_the_page_fits_its_window_and_is_not_blank(browser, width, scheme):
    show(browser, width, scheme)
    sizes = "return [document.documentElement.scrollWidth, innerWidth, document.documentElement.scrollHeight]"
    across, window, _ = browser.execute_script(sizes)
    assert across <= window
    WebDriverWait(browser, PATIENCE).until(lambda driver: scatter(driver).size["width"] < window)
    picture = pixels(scatter(browser))
    back = np.median(picture.reshape(-1, 3), axis=0)
    assert back.mean() < 60 if scheme == "dark" else back.mean() > 240
    for colour in class_colours(browser):
        assert share(picture, colour, back) > 0.001
    for figure in browser.find_elements(By.TAG_NAME, "svg"):
        assert figure.size["width"] > 200
        assert figure.size["height"] > 60
    first = browser.find_element(By.CSS_SELECTOR, ".grid svg")
    drawn = pixels(first)
    assert 0.02 < np.mean(np.abs(drawn - np.median(drawn.reshape(-1, 3), axis=0)).max(axis=-1) > 40) < 0.6


def test_paper_is_light_and_shows_what_is_folded(browser):
    show(browser, 1200, "dark")
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pdf = base64.b64decode(printed["data"])
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page\n") <= 12
    folded = "return document.querySelectorAll('details:not([open])').length"
    panel = "return getComputedStyle(document.documentElement).getPropertyValue('--panel')"
    screen = browser.execute_script(folded), browser.execute_script(panel)
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert (browser.execute_script(folded), browser.execute_script(panel)) == (0, "#fff")
    browser.execute_script("dispatchEvent(new Event('afterprint'))")
    assert (browser.execute_script(folded), browser.execute_script(panel)) == screen


def test_one_click_leaves_a_class_alone_and_a_second_brings_all_back(browser):
    buttons = browser.find_elements(By.CSS_SELECTOR, "button.only")
    boxes = browser.find_elements(By.CSS_SELECTOR, "input[data-class]")

    buttons[1].click()
    assert [box.is_selected() for box in boxes] == [False, True, False]
    assert "class 1 only" in browser.find_element(By.ID, "scatter-text").text

    buttons[1].click()
    assert all(box.is_selected() for box in boxes)


def test_certainty_has_a_legend_where_rows_are_drawn_by_it(browser):
    legend = browser.find_element(By.ID, "certainties")
    assert not legend.is_displayed()

    Select(browser.find_element(By.ID, "how")).select_by_index(2)

    WebDriverWait(browser, PATIENCE).until(lambda _: legend.is_displayed())
    assert [part in legend.text for part in ("over 95 %", "80 to 95 %", "under 80 %")] == [True] * 3


def test_a_table_wider_than_the_window_says_so(browser):
    wide = "return [...document.querySelectorAll('#answer .table')].map((part) => part.className)"
    assert not any("wide" in names for names in browser.execute_script(wide))

    show(browser, 260, "light")

    WebDriverWait(browser, PATIENCE).until(
        lambda _: any("wide" in names and "right" in names for names in browser.execute_script(wide))
    )
    browser.execute_script("document.querySelector('.wide.right .scroll').scrollLeft = 1e6")
    WebDriverWait(browser, PATIENCE).until(
        lambda _: any("wide" in names and "left" in names for names in browser.execute_script(wide))
    )
