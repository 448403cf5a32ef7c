//! `strftime_now`: dates in prompts, from a time that is passed in. All in UTC, so that replicas agree.

use minijinja::{Error, ErrorKind};

const DAY_SECONDS: u64 = 86_400;
/// The start of 10000, in seconds since 1970; Python's dates end there.
const TIME_MAX: u64 = 253_402_300_800;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

struct Date {
    year: u64,
    /// From 0.
    month: usize,
    /// From 1.
    day: u64,
    /// From 1.
    day_of_year: u64,
    /// From 0 for Sunday.
    weekday: usize,
}

/// Writes a time by the directives that Python's `strftime` has, in English.
pub(super) fn strftime(format: &str, now: u64) -> Result<String, Error> {
    let now = now.min(TIME_MAX - 1);
    let date = date(now / DAY_SECONDS);
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next();
        // glibc's `-`: no padding.
        let bare = directive == Some('-');
        if bare {
            directive = chars.next();
        }
        let text = directive.and_then(|directive| field(directive, &date, now % DAY_SECONDS));
        let Some(text) = text else {
            let directive = directive.map(String::from).unwrap_or_default();
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("strftime_now does not know `%{directive}`"),
            ));
        };
        let unpadded = text.trim_start_matches(['0', ' ']);
        out.push_str(if !bare {
            &text
        } else if unpadded.is_empty() {
            "0"
        } else {
            unpadded
        });
    }
    Ok(out)
}

fn field(directive: char, date: &Date, second_of_day: u64) -> Option<String> {
    let Date {
        year,
        month,
        day,
        day_of_year,
        weekday,
    } = *date;
    let (hour, minute, second) = (
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    );
    let hour12 = (hour + 11) % 12 + 1;
    Some(match directive {
        'Y' => format!("{year:04}"),
        'y' => format!("{:02}", year % 100),
        'm' => format!("{:02}", month + 1),
        'd' => format!("{day:02}"),
        'e' => format!("{day:2}"),
        'j' => format!("{day_of_year:03}"),
        'B' => MONTHS[month].to_owned(),
        'b' | 'h' => MONTHS[month][..3].to_owned(),
        'A' => WEEKDAYS[weekday].to_owned(),
        'a' => WEEKDAYS[weekday][..3].to_owned(),
        'H' => format!("{hour:02}"),
        'I' => format!("{hour12:02}"),
        'M' => format!("{minute:02}"),
        'S' => format!("{second:02}"),
        'p' => if hour < 12 { "AM" } else { "PM" }.to_owned(),
        'F' => format!("{year:04}-{:02}-{day:02}", month + 1),
        'T' => format!("{hour:02}:{minute:02}:{second:02}"),
        'Z' => "UTC".to_owned(),
        'z' => "+0000".to_owned(),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

fn date(days_since_1970: u64) -> Date {
    // 1970 began on a Thursday.
    let weekday = ((days_since_1970 + 4) % 7) as usize;
    let mut year = 1970;
    let mut left = days_since_1970;
    while left >= year_days(year) {
        left -= year_days(year);
        year += 1;
    }
    let day_of_year = left + 1;
    let mut month = 0;
    while left >= month_days(year, month) {
        left -= month_days(year, month);
        month += 1;
    }
    Date {
        year,
        month,
        day: left + 1,
        day_of_year,
        weekday,
    }
}

fn is_leap(year: u64) -> bool {
    (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
}

fn year_days(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn month_days(year: u64, month: usize) -> u64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, now: u64, expect: &str) {
        assert_eq!(strftime(format, now).unwrap(), expect);
    }

    #[test]
    fn dates_are_python_s() {
        check("%d %b %Y", 0, "01 Jan 1970");
        check(
            "%A, %B %-d, %Y %H:%M:%S %j %a",
            951_827_696,
            "Tuesday, February 29, 2000 12:34:56 060 Tue",
        );
        check("%Y-%m-%d %I %p %%", 1_796_083_199, "2026-11-30 11 PM %");
        check("%F %T %-I %e", 4_107_542_400, "2100-03-01 00:00:00 12  1");
        check("%Y", u64::MAX, "9999");
    }

    #[test]
    fn an_unknown_directive_is_an_error() {
        assert!(strftime("%Q", 0).is_err());
        assert!(strftime("%", 0).is_err());
    }
}
