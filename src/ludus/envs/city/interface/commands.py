"""What menus, buttons and keys can ask for, and the small enumerations of the interface's state."""

from enum import IntEnum


class Speed(IntEnum):
    """How fast the clock of the game runs."""

    PAUSE = 0
    SLOW = 1
    NORMAL = 2
    FAST = 3


SPEED_PERCENT = {Speed.PAUSE: 0, Speed.SLOW: 50, Speed.NORMAL: 100, Speed.FAST: 200}


class Overlay(IntEnum):
    """What the map shows beside the city itself."""

    NONE = 0
    POWER = 1
    WATER = 2
    TRAFFIC = 3
    POLLUTION = 4
    VALUE = 5
    POLICE = 6
    FIRE = 7
    CLINIC = 8
    SCHOOL = 9


class Window(IntEnum):
    """Windows with information; they stay open beside the game until they are closed."""

    NONE = 0
    BUDGET = 1
    CITY = 2
    DEMAND = 3
    MILESTONES = 4
    GRAPH = 5
    LEGEND = 6
    QUERY = 7


class Dialog(IntEnum):
    """Dialogs; the game waits until they are closed."""

    NONE = 0
    MILESTONE = 1
    FIRE = 2
    STORM = 3
    BOOM = 4
    RECESSION = 5
    DEBT = 6
    BANKRUPT = 7
    YEAR = 8
    ABANDON = 9
    DEMOLISH = 10
    ABOUT = 11


class Command(IntEnum):
    """What an entry of a menu, a button or a key does; most take a number."""

    NOTHING = 0
    ASK_ABANDON = 1
    SHOW_ABOUT = 2
    SET_SPEED = 3
    CHANGE_TAX = 4
    SET_TAX = 5
    FUND_TRANSPORT = 6
    FUND_SAFETY = 7
    FUND_WELFARE = 8
    SET_OVERLAY = 9
    OPEN_WINDOW = 10
    TOGGLE_HINTS = 11
    TOGGLE_REPORT = 12
    SELECT_TOOL = 13
    SCROLL_ACROSS = 14
    SCROLL_DOWN = 15
    TOGGLE_PAUSE = 16
    CHANGE_TRANSPORT = 17
    CHANGE_SAFETY = 18
    CHANGE_WELFARE = 19
